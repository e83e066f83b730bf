package solana

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Blocks returns the blocks of the heights from to to, at most Config.MaxBlocks of them.
func (d *BlockDriver) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if to < from {
		return nil, fault.New(
			fault.Invalid, "range_invalid", "the range of blocks from %d to %d is empty",
			from, to,
		)
	}

	var blocks []chain.Block

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		blocks, err = d.blocks(ctx, e, from, to)
		return err
	})
	if err != nil {
		return nil, aboveTip(err, to)
	}

	return blocks, nil
}

func (d *Driver) blocks(ctx context.Context, e *endpoint, from, to uint64) ([]chain.Block, error) {
	n := int(min(to-from, uint64(d.config.MaxBlocks)-1)) + 1

	slots, err := d.slotsOf(ctx, e, from, n)
	if err != nil {
		return nil, err
	}

	read := make([]header, n)
	blocks := make([]chain.Block, n)

	err = e.each(ctx, n, func(ctx context.Context, i int) error {
		h, err := e.block(ctx, slots[i], "full")
		if err != nil {
			return e.absent(ctx, from+uint64(i), err)
		}

		if h.Height != from+uint64(i) {
			return e.Garbled(
				"its list of slots leaves out blocks: slot %d has block %d, not %d",
				h.slot, h.Height, from+uint64(i),
			)
		}

		blocks[i] = chain.Block{Ref: h.ref(), Parent: h.Parent}
		if blocks[i].Transfers, err = d.blockTransfers(e, h); err != nil {
			return err
		}

		h.Transactions = nil
		read[i] = h

		return nil
	})
	if err != nil {
		return nil, err
	}

	for i := 1; i < n; i++ {
		if read[i].Parent != read[i-1].Hash || read[i].ParentSlot != read[i-1].slot {
			return nil, e.Garbled(
				"block %d is not the child of the one before it; the chain moved while it was read",
				read[i].Height,
			)
		}
	}

	for _, h := range read {
		d.slots.put(h.Height, h.slot)
	}

	return blocks, nil
}

// blockTransfers lists what the transactions of a block moved.
func (d *Driver) blockTransfers(e *endpoint, h header) ([]chain.Transfer, error) {
	if h.Transactions == nil {
		return nil, e.Garbled("it sent block %d without its transactions", h.Height)
	}

	var all []chain.Transfer

	for _, t := range h.Transactions {
		x, err := e.resolve(t.Transaction, t.Meta)
		if err != nil {
			return nil, err
		}

		moved, err := d.transfers(x)
		if err != nil {
			return nil, err
		}

		all = append(all, moved...)
	}

	return all, nil
}
