package follow

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
)

// branchOf returns a cursor with the blocks that it remembers after the batch.
func branchOf(cursor scan.Cursor, b *Batch) scan.Cursor {
	if b.Rewound {
		cursor = scanstate.Back(cursor, b.ForkedFrom)
	}

	if len(b.Blocks) > 0 {
		cursor = scanstate.Forward(cursor, blocksAbove(b.Blocks, b.ForkedFrom.Height))
	}

	return cursor
}

// nextCursor returns the cursor after the batch is stored. next is its branch, see branchOf.
func (f *Follower) nextCursor(cursor, next scan.Cursor, b *Batch) scan.Cursor {
	// Forget safe and final blocks that a fork removed, or that were not read and another block was read
	// instead.
	standing := func(ref chain.Ref) chain.Ref {
		if b.Rewound && ref.Height > b.ForkedFrom.Height || contradicts(next, ref) {
			return chain.Ref{}
		}

		return ref
	}

	next.Network, next.Tip = f.network.Slug, b.Head.Tip
	next.Safe = newer(standing(cursor.Safe), b.Head.Safe)
	next.Final = newer(standing(cursor.Final), b.Head.Final)

	return next
}

// contradicts reports whether the cursor remembers another block of the same height.
func contradicts(cursor scan.Cursor, block chain.Ref) bool {
	other := func(ref chain.Ref) bool { return ref.Height == block.Height && ref.Hash != block.Hash }

	return !block.IsZero() && (other(cursor.At) || slices.ContainsFunc(cursor.Recent, other))
}

// blocksAbove returns the blocks above a height; blocks are ascending.
func blocksAbove(blocks []chain.Block, height uint64) []chain.Block {
	i := slices.IndexFunc(blocks, func(block chain.Block) bool { return block.Height > height })
	if i < 0 {
		return nil
	}

	return blocks[i:]
}

// newer returns is; it returns was if is is zero or lower.
func newer(was, is chain.Ref) chain.Ref {
	if is.IsZero() || is.Height < was.Height {
		return was
	}

	return is
}

// advanceTo returns the compare-and-set that moves the cursor from was to next.
func (f *Follower) advanceTo(
	was scan.Cursor,
	next scan.Cursor,
) func(context.Context, scan.Tx) (scan.Cursor, error) {
	taken := f.lease

	return func(ctx context.Context, tx scan.Tx) (scan.Cursor, error) {
		if err := leases.Check(ctx, tx, taken); err != nil {
			return scan.Cursor{}, err
		}

		now, _, err := tx.Cursor(ctx, f.network.Slug)
		if err != nil {
			return scan.Cursor{}, err
		}

		if now.Stopped != "" || now.At.Height != was.At.Height || now.At.Hash != was.At.Hash {
			return scan.Cursor{}, fault.New(
				fault.LeaseLost, "cursor_moved", "the cursor of %s was moved by another process",
				f.network.Slug,
			)
		}

		moved := next
		moved.Version, moved.UpdatedAt = now.Version, f.Now()

		return moved, tx.PutCursor(ctx, &moved)
	}
}

// stop stores the reason why the network must not be read any further. It returns cause, joined with an error
// of the store.
func (f *Follower) stop(ctx context.Context, cursor scan.Cursor, cause error) error {
	f.Log.ErrorContext(
		ctx, "the network was stopped; nothing more is read from it until it is resumed",
		"network", f.network.Slug, "height", cursor.At.Height, "reason", cause.Error(),
	)

	taken := f.lease
	err := f.DB.Update(ctx, func(ctx context.Context, tx scan.Tx) error {
		if err := leases.Check(ctx, tx, taken); err != nil {
			return err
		}

		stored, _, err := tx.Cursor(ctx, f.network.Slug)
		if err != nil {
			return err
		}

		stored.Network, stored.Stopped, stored.UpdatedAt = f.network.Slug, cause.Error(), f.Now()

		return tx.PutCursor(ctx, &stored)
	})

	return errors.Join(cause, err)
}

// stoppedError returns the error of a step on a stopped network.
func stoppedError(network, why string) error {
	return fault.New(fault.Stopped, "network_stopped", "network %s is stopped: %s", network, why)
}
