package evm

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
)

// firstInternal is the index of a transaction's first internal transfer.
const firstInternal = 1 << 20

// frameJSON is one call of a transaction with its nested calls, in the form of go-ethereum's
// callTracer. Source: go-ethereum documentation, "Built-in tracers".
type frameJSON struct {
	Type  string          `json:"type"`
	From  *common.Address `json:"from"`
	To    *common.Address `json:"to"`
	Value *hexutil.Big    `json:"value"`
	Error string          `json:"error"`
	Calls []frameJSON     `json:"calls"`
}

// internalTransfers returns the native transfers by contracts within a transaction, in call order.
// Reverted calls, and the calls below them, transfer nothing.
func (d *Driver) internalTransfers(ctx context.Context, e *endpoint, hash common.Hash) ([]chain.Transfer, error) {
	c := newCall("debug_traceTransaction", hash, map[string]any{"tracer": "callTracer"})
	if err := e.do(ctx, c); err != nil {
		return nil, err
	}

	var root frameJSON
	if err := c.decode(e, &root); err != nil {
		return nil, err
	}

	var out []chain.Transfer

	index := uint32(firstInternal)

	var walk func(frames []frameJSON) error

	walk = func(frames []frameJSON) error {
		for i := range frames {
			f := &frames[i]
			if f.Error != "" {
				continue
			}

			if f.movesCoin() {
				value, err := e.amount(f.Value)
				if err != nil {
					return err
				}

				if isTransferAmount(value) {
					out = append(out, chain.Transfer{
						TxHash:  hash.Hex(),
						Index:   index,
						From:    canonical(*f.From),
						To:      canonical(*f.To),
						AssetID: d.native.ID,
						Amount:  value,
					})
				}

				index++
			}

			if err := walk(f.Calls); err != nil {
				return err
			}
		}

		return nil
	}
	if err := walk(root.Calls); err != nil {
		return nil, err
	}

	return out, nil
}

// movesCoin reports whether a call transfers native coin between accounts.
func (f *frameJSON) movesCoin() bool {
	switch f.Type {
	case "CALL", "CREATE", "CREATE2", "SELFDESTRUCT":
		return f.From != nil && f.To != nil && f.Value != nil && f.Value.ToInt().Sign() > 0
	}

	return false
}
