package tron

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Head returns the newest block and the newest that is solidified. With several nodes, one that is
// behind what was seen before is passed over while another is ahead.
func (d *Driver) Head(ctx context.Context) (chain.Head, error) {
	var best chain.Head

	err := d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		h, err := e.head(ctx)
		if err != nil {
			return err
		}

		if best.Tip.IsZero() || h.Tip.Height > best.Tip.Height {
			best = h
		}

		if h.Tip.Height < d.nodes.Seen.Load() {
			return failover.ErrLagging
		}

		return nil
	})
	if errors.Is(err, failover.ErrLagging) { // all nodes agree that the chain became shorter
		err = nil
	}

	if err != nil {
		return chain.Head{}, err
	}

	d.nodes.Seen.Store(best.Tip.Height)

	return best, nil
}

// head reads one endpoint's head. The solidified block is asked for first: it can only be older than the tip.
func (e *endpoint) head(ctx context.Context) (chain.Head, error) {
	final, err := e.latest(ctx, solidified)
	if err != nil {
		return chain.Head{}, err
	}

	tip, err := e.latest(ctx, full)
	if err != nil {
		return chain.Head{}, err
	}

	if final.Height > tip.Height {
		return chain.Head{}, e.Garbled("the tip is %d and the solidified block %d", tip.Height, final.Height)
	}

	return chain.Head{Tip: tip, Final: final}, nil
}

// latest returns the newest block of one of the node's sides.
func (e *endpoint) latest(ctx context.Context, s service) (chain.Ref, error) {
	var b blockJSON

	found, err := e.post(ctx, s, "getnowblock", struct{}{}, &b)
	if err != nil {
		return chain.Ref{}, err
	}

	if !found {
		return chain.Ref{}, e.Garbled("it has no newest block")
	}

	ref, err := b.ref(e)
	if err == nil && s == full {
		e.SawTip(ref.Height)
	}

	return ref, err
}

// RefAt returns the canonical block at a height.
func (d *Driver) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	var ref chain.Ref

	err := d.ask(ctx, height, func(ctx context.Context, e *endpoint) (err error) {
		ref, err = e.refAt(ctx, height)
		return err
	})
	if err != nil {
		return chain.Ref{}, aboveTip(err, height)
	}

	return ref, nil
}

func (e *endpoint) refAt(ctx context.Context, height uint64) (chain.Ref, error) {
	b, err := e.block(ctx, height)
	if err != nil {
		return chain.Ref{}, err
	}

	return b.ref(e)
}

// block reads the canonical block at a height.
func (e *endpoint) block(ctx context.Context, height uint64) (*blockJSON, error) {
	var b blockJSON

	found, err := e.post(ctx, full, "getblockbynum", numRequest{height}, &b)
	if err != nil {
		return nil, err
	}

	if !found {
		return nil, e.missingBlock(ctx, height)
	}

	ref, err := b.ref(e)
	if err == nil && ref.Height != height {
		err = e.Garbled("asked for block %d, it answered block %d", height, ref.Height)
	}

	return &b, err
}

// youngDepth is how far below the tip a block may be missing because the node is still taking it
// in, or because another of a provider's nodes answered; deeper, it was thrown away.
const youngDepth = 128

// missingBlock says why the node does not have a block that it was asked for.
func (e *endpoint) missingBlock(ctx context.Context, height uint64) error {
	if err := checkHeight(ctx, e, height); err != nil {
		return err
	}

	if e.KnownTip()-height < youngDepth {
		return e.Garbled("block %d is below its tip and missing", height)
	}

	return failover.ErrPruned
}

// aboveTip translates failover.ErrLagging for a height that no node has reached.
func aboveTip(err error, height uint64) error {
	if errors.Is(err, failover.ErrLagging) {
		return fault.New(fault.NotFound, "block_unknown", "block %d is above the tip", height)
	}

	return err
}
