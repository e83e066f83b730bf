package tron

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Transaction returns a transaction of the pool or of a canonical block, as one node shows it: without the internal
// transfers where several are configured, which no other one confirms. It errors:
//   - fault.Invalid (tx_hash_invalid): the text is no transaction hash
//   - fault.NotFound (transaction_unknown): neither pool nor chain of any node has it
func (d *driver) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
	id, err := parseTxID(hash)
	if err != nil {
		return chain.FoundTx{}, err
	}

	found := chain.FoundTx{TxHash: hex.EncodeToString(id[:])}

	err = d.ask(ctx, 0, func(ctx context.Context, node *endpoint) error {
		lookup, err := node.lookUp(ctx, id)
		switch {
		case err != nil:
			return err
		case lookup.tx == nil:
			return failover.ErrMissing // another node may have it
		case lookup.info == nil:
			found.Block, found.Failed = chain.Ref{}, false
			found.Transfers, found.Spent = d.pendingTransfers(*lookup.tx), lookup.tx.spends(false)

			return nil
		}

		found.Block, found.Failed = lookup.block, lookup.info.failed()
		found.Spent = lookup.tx.spends(found.Failed)
		found.Transfers, _, err = d.transfersOf(node, *lookup.tx, lookup.info)

		if d.hasSeveral() {
			found.Transfers = agree.WithoutInternal(found.Transfers)
		}

		return err
	})
	if err != nil {
		return chain.FoundTx{}, err
	}

	return found, nil
}

// txLookup is a node's answer about a transaction: no tx where the node does not have it, no info while it is
// pending.
type txLookup struct {
	tx    *blockTx
	info  *infoJSON
	block chain.Ref
}

// lookUp returns a transaction at one endpoint. A receipt by id is a hint of the height: what counts is the
// verified block there and its receipts. A pending transaction has bytes and no receipt: java-tron keeps it
// in the same store.
func (e *endpoint) lookUp(ctx context.Context, id [32]byte) (txLookup, error) {
	hash := hex.EncodeToString(id[:])

	var info infoJSON

	included, err := e.post(ctx, full, "gettransactioninfobyid", valueRequest{hash}, &info)
	if err != nil {
		return txLookup{}, err
	}

	if included {
		return e.includedTx(ctx, hash, info.BlockNumber)
	}

	var tx txJSON

	waiting, err := e.post(ctx, full, "gettransactionbyid", valueRequest{hash}, &tx)
	if err != nil || !waiting {
		return txLookup{}, err
	}

	if tx.TxID != hash {
		return txLookup{}, e.Garbled("asked for transaction %s, it answered %s", hash, e.Clean(tx.TxID))
	}

	parsed, err := tx.parse(e)

	return txLookup{tx: &parsed}, err
}

// includedTx returns a transaction from the canonical block of a height, verified as Blocks does. A block that
// does not hold it is a *failover.Failure.
func (e *endpoint) includedTx(ctx context.Context, hash string, height int64) (txLookup, error) {
	if height <= 0 {
		return txLookup{}, e.Garbled("the receipt of transaction %s names no block", hash)
	}

	block, err := e.block(ctx, uint64(height))
	if err != nil {
		return txLookup{}, err
	}

	if _, err := block.verify(e); err != nil {
		return txLookup{}, err
	}

	k := slices.IndexFunc(block.Transactions, func(tx txJSON) bool { return tx.TxID == hash })
	if k < 0 {
		return txLookup{}, e.Garbled(
			"transaction %s is not in block %d, which its receipt names",
			hash, height,
		)
	}

	tx, err := block.Transactions[k].parse(e)
	if err != nil {
		return txLookup{}, err
	}

	infos, err := e.receipts(ctx, uint64(height), len(block.Transactions))
	if err != nil {
		return txLookup{}, err
	}

	lookup := txLookup{tx: &tx, info: infos[hash]}
	if lookup.block, err = block.ref(e); err != nil {
		return txLookup{}, err
	}

	return lookup, lookup.info.check(e, tx, lookup.block.Height)
}
