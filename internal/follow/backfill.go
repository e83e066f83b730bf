package follow

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// backfill reads one stretch of an old range again, and reports whether there was one.
func (f *Follower) backfill(ctx context.Context) (bool, error) {
	ranges, err := f.DB.Ranges(ctx, f.network.Slug, 16)
	if err != nil || len(ranges) == 0 {
		return false, err
	}

	head, err := f.Driver.Head(ctx)
	if err != nil {
		return false, err
	}

	// A range may reach above the tip (addresses made inside a host's transaction); that part waits.
	at := slices.IndexFunc(
		ranges, func(r scan.Range) bool { return r.Next <= head.Tip.Height || r.Next > r.To },
	)
	if at < 0 {
		return false, nil
	}

	old := ranges[at]

	b := Batch{Network: f.network, Head: head, Backfill: &old}
	if to := min(old.To, old.Next+f.BatchBlocks-1, head.Tip.Height); old.Next <= old.To {
		if b.Blocks, err = f.readOldBlocks(ctx, old, to); err != nil {
			return false, fmt.Errorf(
				"reading old blocks from %d of %s again: %w",
				old.Next, f.network.Slug, err,
			)
		}
	}

	b.advance = f.advanceRange(old, b.Blocks)
	if err := f.Handler.Apply(ctx, b); err != nil {
		return false, fmt.Errorf("storing old blocks from %d of %s: %w", old.Next, f.network.Slug, err)
	}

	return true, nil
}

// advanceRange returns the write that moves the range past blocks, or deletes it at its end.
func (f *Follower) advanceRange(
	old scan.Range,
	blocks []chain.Block,
) func(context.Context, scan.Tx) (scan.Cursor, error) {
	taken := f.lease

	return func(ctx context.Context, tx scan.Tx) (scan.Cursor, error) {
		if err := lease.Check(ctx, tx, taken); err != nil {
			return scan.Cursor{}, err
		}

		cursor, _, err := tx.Cursor(ctx, f.network.Slug)
		if err != nil {
			return scan.Cursor{}, err
		}

		done := old
		if n := len(blocks); n > 0 {
			done.Next = blocks[n-1].Height + 1
		}

		if done.Next > done.To {
			return cursor, tx.DeleteRange(ctx, done.ID)
		}

		return cursor, tx.PutRange(ctx, &done)
	}
}

// readOldBlocks reads the blocks of a range up to height to again; the last block returned is the last read.
func (f *Follower) readOldBlocks(ctx context.Context, old scan.Range, to uint64) ([]chain.Block, error) {
	if f.scanner != nil {
		return f.scanner.Blocks(ctx, old.Next, to)
	}

	blocks, err := f.transfers(ctx, old.Addresses, old.Next, to)
	if err != nil || (len(blocks) > 0 && blocks[len(blocks)-1].Height == to) {
		return blocks, err
	}

	last, err := f.Driver.RefAt(ctx, to)

	return append(blocks, chain.Block{Ref: last}), err
}
