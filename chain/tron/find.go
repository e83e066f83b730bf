package tron

import (
	"context"
	"encoding/hex"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Transaction looks a transaction up in chain and pool. Something that is no transaction hash is
// fault.Invalid.
func (d *Driver) Transaction(ctx context.Context, hash string) (chain.Found, error) {
	id, err := parseTxID(hash)
	if err != nil {
		return chain.Found{}, err
	}

	found := chain.Found{TxHash: hex.EncodeToString(id[:])}

	err = d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		s, err := e.sight(ctx, id)
		switch {
		case err != nil:
			return err
		case s.tx == nil:
			return fault.New(
				fault.NotFound, "transaction_unknown", "network %s has no transaction %s",
				d.network.Slug, found.TxHash,
			)
		case s.info == nil:
			found.Transfers = d.foreseen(*s.tx)
			return nil
		}

		found.Block, found.Failed = s.block, s.info.failed()
		found.Transfers, _, err = d.moved(e, *s.tx, s.info)

		return err
	})
	if err != nil {
		return chain.Found{}, err
	}

	return found, nil
}

// sighting is where one transaction was seen: nowhere (no tx), waiting (no info), or in a block.
type sighting struct {
	tx    *body
	info  *infoJSON
	block chain.Ref
}

// sight looks a transaction up at one endpoint. A receipt names no block id, so it counts only when
// the canonical block of its height holds the transaction. Of a transaction that waits the node
// shows the bytes and has no receipt: java-tron keeps it in the same store while it does.
func (e *endpoint) sight(ctx context.Context, id [32]byte) (sighting, error) {
	hash := hex.EncodeToString(id[:])

	var info infoJSON

	included, err := e.post(ctx, full, "gettransactioninfobyid", valueRequest{hash}, &info)
	if err != nil {
		return sighting{}, err
	}

	if included {
		return e.sightIn(ctx, hash, &info)
	}

	var tx txJSON

	waiting, err := e.post(ctx, full, "gettransactionbyid", valueRequest{hash}, &tx)
	if err != nil || !waiting {
		return sighting{}, err
	}

	if tx.TxID != hash {
		return sighting{}, e.Garbled("asked for transaction %s, it answered %s", hash, e.Clean(tx.TxID))
	}

	b, err := tx.read(e)

	return sighting{tx: &b}, err
}

// sightIn finds a transaction in the block that its receipt names.
func (e *endpoint) sightIn(ctx context.Context, hash string, info *infoJSON) (sighting, error) {
	if info.BlockNumber <= 0 {
		return sighting{}, e.Garbled("the receipt of transaction %s names no block", hash)
	}

	block, err := e.block(ctx, uint64(info.BlockNumber))
	if err != nil {
		return sighting{}, err
	}

	for k := range block.Transactions {
		if block.Transactions[k].TxID != hash {
			continue
		}

		b, err := block.Transactions[k].read(e)
		if err != nil {
			return sighting{}, err
		}

		s := sighting{tx: &b, info: info}
		if s.block, err = block.ref(e); err != nil {
			return sighting{}, err
		}

		return s, info.check(e, b, s.block.Height)
	}

	return sighting{}, e.Garbled(
		"transaction %s is not in block %d, which its receipt names",
		hash, info.BlockNumber,
	)
}
