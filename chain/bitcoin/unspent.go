package bitcoin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// unspentBatch is the number of outputs that are read with one batch of calls.
const unspentBatch = 200

// Unspent returns the amounts of outputs in the node's UTXO set, without the mempool; 0 for an output that is
// spent or unknown. All answers are of one tip: if a block arrives in between, the error is
// fault.Unavailable.
func (d *driver) Unspent(
	ctx context.Context,
	outpoints []chain.Outpoint,
) (at chain.Ref, amounts []chain.Amount, err error) {
	err = d.ask(ctx, func(ctx context.Context, node *endpoint) error {
		tip, err := node.tip(ctx)
		if err != nil {
			return err
		}

		at, amounts = tip.ref(), make([]chain.Amount, 0, len(outpoints))
		for batch := range slices.Chunk(outpoints, unspentBatch) {
			calls := make([]*rpcCall, len(batch))
			for i, outpoint := range batch {
				calls[i] = newCall("gettxout", outpoint.TxHash, outpoint.Vout, false)
			}

			if err := node.batchCall(ctx, calls...); err != nil {
				return err
			}

			for _, call := range calls {
				amount, err := call.unspentAmount(node, tip.Hash)
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

// unspentAmount returns the amount in an answer of gettxout; 0 for an output that is spent or unknown.
func (c *rpcCall) unspentAmount(node *endpoint, tip string) (chain.Amount, error) {
	if c.isNull() {
		return chain.Amount{}, nil
	}

	var output struct {
		Best  string      `json:"bestblock"`
		Value json.Number `json:"value"`
	}
	if err := c.decode(node, &output); err != nil {
		return chain.Amount{}, err
	}

	if output.Best != tip {
		return chain.Amount{}, fault.New(
			fault.Unavailable, "chain_moved",
			"a block arrived at node %s while its unspent outputs were read; ask again",
			node.Host,
		)
	}

	value, err := satoshiOf(output.Value.String())
	if err != nil {
		return chain.Amount{}, node.Garbled("the value of an unspent output is no amount")
	}

	return satoshiAmount(value), nil
}

// coinbaseMaturity is the number of confirmations that a block reward needs before it can be spent.
const coinbaseMaturity = 100

// unspendable returns the coins that are immature, or not in the node's UTXO set as they are on record.
//
// Confirmed coins are read without the mempool, because our records show whether a transaction of ours
// already spends them. Required unconfirmed coins are not read: the replaced transaction spends them.
func (e *endpoint) unspendable(ctx context.Context, coins, required []candidate) ([]chain.Outpoint, error) {
	var (
		checked []candidate
		calls   []*rpcCall
	)

	for _, coin := range coins {
		isCoin := func(other candidate) bool { return other.Outpoint == coin.Outpoint }
		if coin.Height == 0 && slices.ContainsFunc(required, isCoin) {
			continue
		}

		checked = append(checked, coin)
		calls = append(calls, newCall("gettxout", coin.Outpoint.TxHash, coin.Outpoint.Vout, coin.Height == 0))
	}

	if err := e.batchCall(ctx, calls...); err != nil {
		return nil, err
	}

	var outpoints []chain.Outpoint

	for i, coin := range checked {
		spendable, err := calls[i].isSpendable(e, coin)
		if err != nil {
			return nil, err
		}

		if !spendable {
			outpoints = append(outpoints, coin.Outpoint)
		}
	}

	return outpoints, nil
}

// isSpendable reports whether an answer of gettxout shows the coin as it is on record, and mature.
func (c *rpcCall) isSpendable(node *endpoint, coin candidate) (bool, error) {
	if c.isNull() {
		return false, nil
	}

	var output struct {
		Confirmations int64       `json:"confirmations"`
		Value         json.Number `json:"value"`
		Coinbase      bool        `json:"coinbase"`
		Script        struct {
			Hex string `json:"hex"`
		} `json:"scriptPubKey"`
	}
	if err := c.decode(node, &output); err != nil {
		return false, err
	}

	value, err := satoshiOf(output.Value.String())
	if err != nil || value != coin.value || output.Script.Hex != fmt.Sprintf("%x", coin.script) {
		return false, nil
	}

	return !output.Coinbase || output.Confirmations >= coinbaseMaturity, nil
}
