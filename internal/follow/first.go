package follow

// This file finds where a network that was never followed is read from.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// firstCursor returns the cursor of a network that was never followed: at the tip, or at the last block before
// an address of it was handed out, which may have been paid since.
func (f *Follower) firstCursor(ctx context.Context, head chain.Head) (scan.Cursor, error) {
	first := scan.Cursor{Network: f.network.Slug, At: head.Tip}
	if f.FirstAddress == nil {
		return first, nil
	}

	// It is asked for after the head was read: who makes an address later can be paid only above the tip.
	made, err := f.FirstAddress(ctx)
	if err != nil {
		return first, fmt.Errorf("reading the oldest address of %s: %w", f.network.Slug, err)
	}

	if made.IsZero() {
		return first, nil
	}

	if first.At, err = f.firstBlock(ctx, head.Tip, made); err != nil {
		return first, fmt.Errorf(
			"finding the block of %s at which its first address was made: %w", f.network.Slug, err,
		)
	}

	return first, nil
}

// How much earlier than our clock a block may be timed: by clockMargin, and by clockBlocks. A Bitcoin block is timed
// after the median of the 11 blocks before it, and no more is asked of it (BIP 113).
const (
	clockMargin = 10 * time.Minute
	clockBlocks = 12
)

// firstBlock returns the block above which what was paid to an address made at a time may be, or the one below the
// oldest that the node has.
func (f *Follower) firstBlock(ctx context.Context, tip chain.Ref, made time.Time) (chain.Ref, error) {
	for {
		timed, err := f.blockBefore(ctx, tip, made.Add(-clockMargin))
		if err != nil {
			return timed, err
		}

		earlier, err := f.Driver.RefAt(ctx, timed.Height-min(timed.Height, clockBlocks))
		if chaindata.IsPruned(err) {
			return timed, nil
		}

		if err != nil {
			return timed, err
		}

		// What is before the block on another branch may be timed after it.
		still, err := f.Driver.RefAt(ctx, timed.Height)
		if err != nil || still.Hash == timed.Hash {
			return earlier, err
		}

		if tip, err = f.Driver.RefAt(ctx, tip.Height); err != nil {
			return timed, err
		}
	}
}

// blockBefore returns the newest block timed before t, or the one below the oldest that the node has.
func (f *Follower) blockBefore(ctx context.Context, tip chain.Ref, t time.Time) (chain.Ref, error) {
	if tip.Time.Before(t) {
		return tip, nil
	}

	// The block at high is not timed before t; the one at low is, or the node has it no more.
	var before chain.Ref

	low, high, after := tip.Height, tip.Height, tip

	look := func(height uint64) error {
		ref, err := f.Driver.RefAt(ctx, height)

		switch {
		case chaindata.IsPruned(err):
			low, before = height, chain.Ref{}
		case err != nil:
			return err
		case ref.Time.Before(t):
			low, before = height, ref
		default:
			high, after = height, ref
		}

		return nil
	}

	// Few nodes have every block: none is asked for that is much older than t.
	for back := uint64(1); low == tip.Height && high > 0; back *= 2 {
		if err := look(tip.Height - min(back, tip.Height)); err != nil {
			return chain.Ref{}, err
		}
	}

	for high > low+1 {
		if err := look(low + (high-low)/2); err != nil {
			return chain.Ref{}, err
		}
	}

	if !before.IsZero() {
		return before, nil
	}

	if after.Height == 0 {
		return after, nil
	}

	f.Log.WarnContext(
		ctx,
		"the node lacks blocks since the first address was made; what was paid in them shows as balances alone",
		"network",
		f.network.Slug,
		"first_height",
		after.Height,
	)

	below, err := chaindata.Below(ctx, f.Driver, after)
	if chaindata.IsPruned(err) {
		return after, nil // nothing names its parent
	}

	return below, err
}
