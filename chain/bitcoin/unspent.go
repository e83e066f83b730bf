package bitcoin

import (
	"context"
	"encoding/json"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// unspentBatch is how many outputs one call asks for.
const unspentBatch = 200

// Unspent asks the node's set of unspent outputs, without the pool. Every answer is of one tip: when a block
// arrives in between, it is fault.Unavailable.
func (d *Driver) Unspent(
	ctx context.Context,
	outpoints []chain.Outpoint,
) (at chain.Ref, amounts []chain.Amount, err error) {
	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		tip, err := e.tip(ctx)
		if err != nil {
			return err
		}

		at, amounts = tip.ref(), make([]chain.Amount, 0, len(outpoints))
		for start := 0; start < len(outpoints); start += unspentBatch {
			part := outpoints[start:min(start+unspentBatch, len(outpoints))]

			calls := make([]*rpcCall, len(part))
			for i, o := range part {
				calls[i] = newCall("gettxout", o.TxHash, o.Vout, false)
			}

			if err := e.batchCall(ctx, calls...); err != nil {
				return err
			}

			for _, call := range calls {
				amount, err := call.unspentAmount(e, tip.Hash)
				if err != nil {
					return err
				}

				amounts = append(amounts, amount)
			}
		}

		return nil
	})
	if err != nil {
		return chain.Ref{}, nil, err
	}

	return at, amounts, nil
}

// unspentAmount reads an answer of gettxout; 0 for an output that is spent or unknown.
func (c *rpcCall) unspentAmount(e *endpoint, tip string) (chain.Amount, error) {
	if c.isNull() {
		return chain.Amount{}, nil
	}

	var out struct {
		Best  string      `json:"bestblock"`
		Value json.Number `json:"value"`
	}
	if err := c.decode(e, &out); err != nil {
		return chain.Amount{}, err
	}

	if out.Best != tip {
		return chain.Amount{}, fault.New(
			fault.Unavailable, "chain_moved",
			"a block arrived at node %s while its unspent outputs were read; ask again",
			e.Host,
		)
	}

	value, err := satoshiOf(out.Value.String())
	if err != nil {
		return chain.Amount{}, e.Garbled("the value of an unspent output is no amount")
	}

	return satoshiAmount(value), nil
}
