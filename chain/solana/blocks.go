package solana

// This file reads whole blocks.

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Blocks returns the blocks of a range of heights, at most Config.MaxBlocks of them.
func (d *blockDriver) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if to < from {
		return nil, emptyRange(from, to)
	}

	var blocks []chain.Block

	count := int(min(to-from, uint64(d.config.MaxBlocks)-1)) + 1

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		blocks, err = d.blocksOf(ctx, e, from, count)
		return err
	})
	if err != nil {
		return nil, aboveTip(err, to)
	}

	return blocks, nil
}

// blocksOf reads the blocks of a range from one node. What was remembered of slots may be of another branch.
func (d *blockDriver) blocksOf(
	ctx context.Context,
	e *endpoint,
	from uint64,
	count int,
) ([]chain.Block, error) {
	slots, remembered, err := d.slotsOf(ctx, e, from, count)
	if err == nil {
		var blocks []chain.Block
		if blocks, err = d.readSlots(ctx, e, from, slots); err == nil {
			return blocks, nil
		}
	}

	if !remembered || errors.Is(err, failover.ErrLagging) || ctx.Err() != nil {
		return nil, err
	}

	d.slots.clear()

	if slots, _, err = d.slotsOf(ctx, e, from, count); err != nil {
		return nil, err
	}

	return d.readSlots(ctx, e, from, slots)
}

// readSlots reads the blocks of slots, whose heights follow from, and checks that each is the child of the one
// before.
func (d *blockDriver) readSlots(
	ctx context.Context,
	e *endpoint,
	from uint64,
	slots []uint64,
) ([]chain.Block, error) {
	count := len(slots)
	headers := make([]blockHeader, count)
	blocks := make([]chain.Block, count)

	err := e.forEach(ctx, count, func(ctx context.Context, i int) error {
		h, err := e.block(ctx, slots[i], "accounts")
		if err != nil {
			return e.blockError(ctx, from+uint64(i), err)
		}

		if h.Height != from+uint64(i) {
			return e.slotMismatch(h, from+uint64(i))
		}

		blocks[i] = chain.Block{Ref: h.ref(), Parent: h.Parent}
		if err := d.readTransactions(ctx, e, h, &blocks[i]); err != nil {
			return err
		}

		h.Transactions = nil // megabytes that are no longer needed
		headers[i] = h

		return nil
	})
	if err != nil {
		return nil, err
	}

	for i := 1; i < count; i++ {
		if headers[i].Parent != headers[i-1].Hash || headers[i].ParentSlot != headers[i-1].slot {
			return nil, e.Garbled(
				"block %d is not the child of the one before it; the chain moved while it was read",
				headers[i].Height,
			)
		}
	}

	for _, h := range headers {
		d.slots.put(h.Height, h.slot)
	}

	return blocks, nil
}

// readTransactions adds the transfers and signers of a block's transactions to it. A transaction that the node
// cannot show is listed as unread, and does not hold up the others.
func (d *driver) readTransactions(
	ctx context.Context,
	e *endpoint,
	h blockHeader,
	block *chain.Block,
) error {
	if h.Transactions == nil {
		return e.Garbled("it sent block %d without its transactions", h.Height)
	}

	seen := make(map[string]bool, len(h.Transactions))

	for _, encoded := range h.Transactions {
		tx, err := e.executedOf(encoded)
		if err == nil {
			err = d.checkOpened(ctx, e, tx)
		}

		unread, isUnread := unreadTx(err)
		if err != nil && !isUnread {
			return err
		}

		if seen[tx.hash] {
			return e.Garbled("its block %d holds transaction %s twice", h.Height, tx.hash)
		}

		seen[tx.hash] = true
		block.Spent = append(block.Spent, tx.spends()...)

		if isUnread {
			unread.Height = h.Height
			block.Unread = append(block.Unread, unread)

			continue
		}

		transfers, err := d.transfers(tx)
		if err != nil {
			return err
		}

		block.Transfers = append(block.Transfers, transfers...)
	}

	return nil
}
