package solana

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// AgreedBlock returns a block as two nodes show it, or the only one that is configured: no hash binds what its
// transactions did. Each node is asked for the given transactions alone, and for no whole block. A transaction of which
// no two nodes show the same is in Unread and nowhere else, and Unverified is set. See chain.Agreed.
func (d *driver) AgreedBlock(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	if len(hashes) == 0 {
		if err := agree.Ref(ctx, d.nodes, d.config.Attempts, at, false, d.refAt); err != nil {
			return chain.Block{}, err
		}

		return chain.Block{Ref: at}, nil
	}

	block, err := agree.Block(
		ctx, d.nodes, d.config.Attempts, 0, at,
		func(ctx context.Context, e *endpoint) (chain.Block, error) { return d.readSome(ctx, e, at, hashes) },
	)

	return block, aboveTip(err, at.Height)
}

// headerOf reads the header of a block from one node. Another block at its height is fault.NotFound (block_unknown).
func (d *driver) headerOf(ctx context.Context, e *endpoint, at chain.Ref) (blockHeader, error) {
	h, err := d.headerAt(ctx, e, at.Height)
	if err == nil && h.Hash != at.Hash {
		err = d.otherBlock(e, h, at)
	}

	return h, err
}

// otherBlock is the error of a node that has another block at a height.
func (d *driver) otherBlock(e *endpoint, has blockHeader, at chain.Ref) error {
	return fault.New(
		fault.NotFound, "block_unknown", "node %s of network %s has block %s at height %d, not %s",
		e.Host, d.network.Slug, has.Hash, at.Height, at.Hash,
	)
}

// readSome reads transactions of a block from one node. Another block at its height is fault.NotFound (block_unknown).
// One that the node says is elsewhere or nowhere is not in the block.
func (d *driver) readSome(
	ctx context.Context,
	e *endpoint,
	at chain.Ref,
	hashes []string,
) (chain.Block, error) {
	h, err := d.headerOf(ctx, e, at)
	if err != nil {
		return chain.Block{}, err
	}

	parts := make([]chain.Block, len(hashes))

	err = e.forEach(ctx, len(hashes), func(ctx context.Context, i int) (err error) {
		parts[i], err = d.readOne(ctx, e, h, hashes[i])
		return err
	})
	if err != nil {
		return chain.Block{}, err
	}

	block := chain.Block{Ref: h.ref(), Parent: h.Parent}
	for _, part := range parts {
		block.Transfers = append(block.Transfers, part.Transfers...)
		block.Spent = append(block.Spent, part.Spent...)
		block.Unread = append(block.Unread, part.Unread...)
	}

	return block, nil
}

// readOne reads what one transaction did in a block. That it is nowhere is said by a backend that has the block.
func (d *driver) readOne(
	ctx context.Context,
	e *endpoint,
	h blockHeader,
	hash string,
) (part chain.Block, err error) {
	tx, slot, err := d.fetchExecuted(ctx, e, hash)
	if errors.Is(err, failover.ErrMissing) {
		known, err := e.signatureStatus(ctx, hash, h.slot)
		if err == nil && known != nil && e.shows(known.Status) {
			part.Unread = []chain.Unread{{Height: h.Height, TxHash: hash, Why: listedAndMissing}}
		}

		return part, err
	}

	unread, isUnread := unreadTx(err)

	switch {
	case isUnread:
		unread.Height, part.Unread = h.Height, []chain.Unread{unread}
		return part, nil
	case err != nil || slot != h.slot:
		return part, err
	}

	part.Spent = tx.spends()
	part.Transfers, err = d.transfers(tx)

	return part, err
}
