package evm

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Head returns the newest block and the newest that the network calls safe and finalized. With several
// nodes, one that is behind what was seen before is passed over while another is ahead.
func (d *Driver) Head(ctx context.Context) (chain.Head, error) {
	var best chain.Head

	err := d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		h, err := d.headOf(ctx, e)
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

// headOf reads one endpoint's head. The final block is asked for first: it can only be older than the tip.
func (d *Driver) headOf(ctx context.Context, e *endpoint) (chain.Head, error) {
	final := newCall("eth_getBlockByNumber", "finalized", false)
	safe := newCall("eth_getBlockByNumber", "safe", false)

	tip := newCall("eth_getBlockByNumber", "latest", false)
	if err := e.do(ctx, final, safe, tip); err != nil {
		return chain.Head{}, err
	}

	var (
		h      chain.Head
		header headerJSON
	)

	err := tip.decode(e, &header)
	if err == nil {
		h.Tip, err = header.ref(e)
	}

	if err == nil {
		h.Safe, err = d.tagged(e, safe)
	}

	if err == nil {
		h.Final, err = d.tagged(e, final)
	}

	if err != nil {
		return chain.Head{}, err
	}

	if h.Safe.Height > h.Tip.Height || (!h.Safe.IsZero() && h.Final.Height > h.Safe.Height) {
		return chain.Head{}, e.Garbled(
			"tip %d, safe %d, final %d", h.Tip.Height, h.Safe.Height, h.Final.Height,
		)
	}

	e.SawTip(h.Tip.Height)

	return h, nil
}

// tagged reads the answer for a finality tag. A node that has never named such a block does not support
// it (zero); once one has, silence is an outage: falling back to depth then could weaken the rule.
func (d *Driver) tagged(e *endpoint, c *call) (chain.Ref, error) {
	if c.null() || c.err != nil {
		if d.finality.Load() {
			return chain.Ref{}, e.Garbled("it no longer names its safe and final blocks")
		}

		return chain.Ref{}, nil
	}

	var header headerJSON
	if err := c.decode(e, &header); err != nil {
		return chain.Ref{}, err
	}

	ref, err := header.ref(e)
	if err == nil {
		d.finality.Store(true)
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

	return ref, aboveTip(err, height)
}

func (e *endpoint) refAt(ctx context.Context, height uint64) (chain.Ref, error) {
	c := newCall("eth_getBlockByNumber", hexutil.Uint64(height), false)
	if err := e.do(ctx, c); err != nil {
		return chain.Ref{}, err
	}

	if c.null() || c.err != nil {
		return chain.Ref{}, e.absent(ctx, height, c)
	}

	var header headerJSON
	if err := c.decode(e, &header); err != nil {
		return chain.Ref{}, err
	}

	ref, err := header.ref(e)
	if err == nil && ref.Height != height {
		err = e.Garbled("asked for block %d, it answered block %d", height, ref.Height)
	}

	return ref, err
}

// youngDepth is how far below the tip a block may be missing because the node is still taking it in;
// deeper, it was thrown away.
const youngDepth = 128

// absent says why the node does not have a block that it was asked for.
func (e *endpoint) absent(ctx context.Context, height uint64, c *call) error {
	if refused, ok := errors.AsType[*failover.Refusal](c.err); ok {
		if refused.Code == codePruned {
			return failover.ErrPruned
		}

		return c.err
	}

	if err := refreshTip(ctx, e, height); err != nil {
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
