package solana

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Head returns the newest confirmed block, which is also the safe one, and the newest finalized
// block. With several nodes, one that is behind what was seen before is passed over while another
// is ahead.
func (d *Driver) Head(ctx context.Context) (chain.Head, error) {
	var best chain.Head

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		final, err := e.newest(ctx, "finalized") // first: it can only be older than the tip
		if err != nil {
			return err
		}

		tip, err := e.newest(ctx, "confirmed")
		if err != nil {
			return err
		}

		if final.Height > tip.Height {
			return e.Garbled("its final block %d is above its tip %d", final.Height, tip.Height)
		}

		e.SawTip(tip.Height)
		d.slots.put(tip.Height, tip.slot)

		if best.Tip.IsZero() || tip.Height > best.Tip.Height {
			best = chain.Head{Tip: tip.ref(), Safe: tip.ref(), Final: final.ref()}
		}

		if tip.Height < d.nodes.Seen.Load() {
			return failover.ErrLagging
		}

		return nil
	})
	// all nodes agree that the chain became shorter
	if errors.Is(err, failover.ErrLagging) && !best.Tip.IsZero() {
		err = nil
	}

	if err != nil {
		return chain.Head{}, err
	}

	d.nodes.Seen.Store(best.Tip.Height)

	return best, nil
}

// RefAt returns the canonical block at a height.
func (d *Driver) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	var ref chain.Ref

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		h, err := d.headerAt(ctx, e, height)
		if err == nil {
			ref = h.ref()
		}

		return err
	})

	return ref, aboveTip(err, height)
}

// aboveTip translates failover.ErrLagging for a height that no node has reached.
func aboveTip(err error, height uint64) error {
	if errors.Is(err, failover.ErrLagging) {
		return fault.New(fault.NotFound, "block_unknown", "block %d is above the tip", height)
	}

	return err
}
