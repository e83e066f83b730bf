package evm

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

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

// internalTransfers returns the native transfers by contracts within a transaction, in call order. Reverted
// calls, and the calls inside them, transfer nothing.
func (d *driver) internalTransfers(
	ctx context.Context,
	node *endpoint,
	hash common.Hash,
) ([]chain.Transfer, error) {
	rpcCall := newCall("debug_traceTransaction", hash, map[string]any{"tracer": "callTracer"})
	if err := node.do(ctx, rpcCall); err != nil {
		return nil, err
	}

	var root frameJSON
	if err := rpcCall.decode(node, &root); err != nil {
		return nil, err
	}

	var transfers []chain.Transfer

	index := uint32(chaindata.InternalIndex)

	for _, frame := range successfulCalls(root.Calls, nil) {
		if !frame.movesCoin() {
			continue
		}

		value, err := node.amount(frame.Value)
		if err != nil {
			return nil, err
		}

		if isTransferAmount(value) {
			transfers = append(transfers, chain.Transfer{
				TxHash:  hash.Hex(),
				Index:   index,
				From:    canonical(*frame.From),
				To:      canonical(*frame.To),
				AssetID: d.native.ID,
				Amount:  value,
			})
		}

		index++
	}

	return transfers, nil
}

// successfulCalls appends the frames that were not reverted to calls, depth first.
func successfulCalls(frames []frameJSON, calls []*frameJSON) []*frameJSON {
	for i := range frames {
		if frames[i].Error == "" {
			calls = append(calls, &frames[i])
			calls = successfulCalls(frames[i].Calls, calls)
		}
	}

	return calls
}

// movesCoin reports whether a call transfers native coin between accounts.
func (f *frameJSON) movesCoin() bool {
	switch f.Type {
	case "CALL", "CREATE", "CREATE2", "SELFDESTRUCT":
		return f.From != nil && f.To != nil && f.Value != nil && f.Value.ToInt().Sign() > 0
	}

	return false
}
