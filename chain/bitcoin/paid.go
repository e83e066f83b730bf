package bitcoin

import (
	"context"
	"encoding/json"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
)

// feePaid returns the network fee of a transaction in a block, in satoshi: its inputs less its outputs. A
// coin's value is read from the transaction that made it, whose bytes are checked by their hash. A node
// without an index of transactions may report the value with the block, but nothing proves it. The fee is 0
// if the node reports none.
func (d *driver) feePaid(
	ctx context.Context,
	node *endpoint,
	tx *wire.MsgTx,
	at chain.Ref,
) (chain.Amount, error) {
	spent, known, err := node.indexedInputs(ctx, tx)
	if err != nil {
		return chain.Amount{}, err
	}

	if !known {
		if spent, known, err = d.namedInputs(ctx, node, tx, at); err != nil || !known {
			return chain.Amount{}, err
		}
	}

	for _, out := range tx.TxOut {
		spent -= out.Value
	}

	if spent < 0 {
		return chain.Amount{}, node.Garbled("transaction %s spends more than its inputs", tx.TxHash())
	}

	return satoshiAmount(spent), nil
}

// indexedInputs returns the sum of a transaction's inputs, in satoshi, from the transactions that made them.
// known is false if the node lacks one of those.
func (e *endpoint) indexedInputs(ctx context.Context, tx *wire.MsgTx) (sum int64, known bool, err error) {
	for _, in := range tx.TxIn {
		coin := in.PreviousOutPoint

		made, err := e.lookUp(ctx, coin.Hash.String())
		if err != nil || made.tx == nil {
			return 0, false, err
		}

		if int(coin.Index) >= len(made.tx.TxOut) {
			return 0, false, e.Garbled("transaction %s has no output %d", coin.Hash, coin.Index)
		}

		sum += made.tx.TxOut[coin.Index].Value
	}

	return sum, true, nil
}

// namedInputs returns the sum of a transaction's inputs, in satoshi, as the node reports them with the block.
// known is false if it does not report them, or if the answer is too large.
func (d *driver) namedInputs(
	ctx context.Context,
	node *endpoint,
	tx *wire.MsgTx,
	at chain.Ref,
) (sum int64, known bool, err error) {
	var block struct {
		Txs []struct {
			ID string `json:"txid"`
			In []struct {
				Spent *struct {
					Value json.Number `json:"value"`
				} `json:"prevout"`
			} `json:"vin"`
		} `json:"tx"`
	}

	err = node.call(ctx, &block, "getblock", at.Hash, 3)
	if isTooMuch(err) {
		return 0, false, nil
	}

	if err != nil {
		return 0, false, err
	}

	id := tx.TxHash().String()

	for _, named := range block.Txs {
		if named.ID != id {
			continue
		}

		if len(named.In) != len(tx.TxIn) {
			return 0, false, nil
		}

		for _, in := range named.In {
			if in.Spent == nil {
				return 0, false, nil
			}

			value, err := satoshiOf(in.Spent.Value.String())
			if err != nil {
				return 0, false, node.Garbled("transaction %s spends an amount that is none", id)
			}

			sum += value
		}

		return sum, true, nil
	}

	return 0, false, nil
}
