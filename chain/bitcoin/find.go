package bitcoin

import (
	"context"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Transaction looks a transaction up in pool and chain. A node finds one in a block only with an index of
// transactions (-txindex=1): without it, or while it is being made, one that does not wait in the pool is
// fault.Unavailable with code txindex_missing, since its absence is not known.
func (d *Driver) Transaction(ctx context.Context, hash string) (chain.Found, error) {
	hash, err := parseHash(hash)
	if err != nil {
		return chain.Found{}, err
	}

	found := chain.Found{TxHash: hash}

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		lookup, err := e.lookUp(ctx, hash)
		if err != nil {
			return err
		}

		if lookup.tx == nil {
			if err := e.checkTxIndex(ctx); err != nil {
				return err
			}

			return fault.New(
				fault.NotFound, "transaction_unknown", "network %s has no transaction %s",
				d.network.Slug, hash,
			)
		}

		found.Block, found.Transfers = lookup.block, d.transfers(lookup.tx, hash, "")

		return nil
	})
	if err != nil {
		return chain.Found{}, err
	}

	return found, nil
}

// txLookup is what a node shows of a transaction: nothing, one that waits, or one in a canonical block.
type txLookup struct {
	tx    *wire.MsgTx
	block chain.Ref
}

func (e *endpoint) lookUp(ctx context.Context, hash string) (txLookup, error) {
	var answer struct {
		Hex       string `json:"hex"`
		BlockHash string `json:"blockhash"`
	}

	err := e.call(ctx, &answer, "getrawtransaction", hash, 1)
	if failover.RefusedWith(err, codeNotFound) {
		return txLookup{}, nil
	}

	if err != nil {
		return txLookup{}, err
	}

	tx, err := decodeTx(answer.Hex)
	if err != nil || tx.TxHash().String() != hash {
		return txLookup{}, e.Garbled("asked for transaction %s, it answered another", hash)
	}

	if answer.BlockHash == "" {
		return txLookup{tx: tx}, nil
	}

	header, err := e.header(ctx, answer.BlockHash)
	if err != nil {
		return txLookup{}, err
	}

	if header.Confirmations < 1 {
		return txLookup{}, nil // in a block that left the chain
	}

	return txLookup{tx: tx, block: header.ref()}, nil
}

// checkTxIndex is nil when the node's index of transactions is complete.
func (e *endpoint) checkTxIndex(ctx context.Context) error {
	var indexes map[string]struct {
		Synced bool `json:"synced"`
	}

	err := e.call(ctx, &indexes, "getindexinfo")
	if failover.RefusedWith(err, codeNoMethod) {
		return nil // btcd, which answers getrawtransaction with another code when it has no index
	}

	if err == nil && !indexes["txindex"].Synced {
		err = &failover.Failure{
			Host: e.Host,
			Code: "txindex_missing",
			What: "it has no complete index of transactions: start it with -txindex=1",
		}
	}

	return err
}
