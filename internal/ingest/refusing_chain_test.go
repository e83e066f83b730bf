package ingest_test

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// chainWithBadToken is a network on which a token's balanceOf may revert.
type chainWithBadToken struct {
	*sim.Chain
	w *harness
}

func (c chainWithBadToken) Balances(
	ctx context.Context,
	at chain.Ref,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	amounts, err := c.Chain.Balances(ctx, at, holdings)

	if c.w.refuses(ctx, at, holdings) {
		return nil, sim.Unavailable()
	}

	if err == nil && c.w.isUnshared(ctx, at) {
		for i := range amounts {
			amounts[i] = amounts[i].Add(coin(1))
		}
	}

	c.w.mu.Lock()
	defer c.w.mu.Unlock()

	if err == nil && !c.w.alone.IsZero() {
		return amounts, c.unshared(holdings, amounts)
	}

	bad, ok := c.Network().Asset(c.w.badToken)
	if err != nil || !ok {
		return amounts, err
	}

	failure := &chain.UnreadableError{Network: c.Network().Slug}

	for i, holding := range holdings {
		if holding.AssetID == bad.ID {
			amounts[i] = chain.Amount{}
			failure.Holdings = append(
				failure.Holdings, chain.UnreadableHolding{Holding: holding, Index: i, Err: sim.Unavailable()},
			)
		}
	}

	if len(failure.Holdings) == 0 {
		return amounts, nil
	}

	return amounts, failure
}

// unshared adds to what one node alone says, and returns the error that names it.
func (c chainWithBadToken) unshared(holdings []chain.Holding, amounts []chain.Amount) error {
	native, _ := c.Network().Native()
	alone := &chain.UnreadableError{Network: c.Network().Slug}

	for i, holding := range holdings {
		if holding.AssetID == native.ID {
			amounts[i] = amounts[i].Add(c.w.alone)
		}

		alone.Holdings = append(alone.Holdings, chain.UnreadableHolding{
			Holding: holding,
			Index:   i,
			Err: fault.Wrap(
				chain.ErrNotAgreed,
				fault.Unavailable,
				"nodes_missing",
				"one node alone answers",
			),

			Provisional: true,
		})
	}

	return alone
}

// AgreedHead leaves out the blocks that one node alone has.
func (c chainWithBadToken) AgreedHead(ctx context.Context) (chain.Head, error) {
	head, err := c.Chain.AgreedHead(ctx)
	for err == nil && c.w.isUnshared(ctx, head.Tip) {
		head.Tip, err = c.Chain.RefAt(ctx, head.Tip.Height-1)
	}

	return head, err
}

// AgreedBlock refuses blocks that one node alone has.
func (c chainWithBadToken) AgreedBlock(
	ctx context.Context,
	at chain.Ref,
	hashes []string,
) (chain.Block, error) {
	if c.w.isUnshared(ctx, at) {
		return chain.Block{}, sim.Unavailable()
	}

	return c.Chain.AgreedBlock(ctx, at, hashes)
}

// isUnshared reports whether one node alone has a block.
func (w *harness) isUnshared(ctx context.Context, at chain.Ref) bool {
	w.mu.Lock()
	behind := w.behind
	w.mu.Unlock()

	if behind == 0 {
		return false
	}

	head, err := w.chain.Head(ctx)
	w.must(err)

	return at.Height+behind > head.Tip.Height
}

// refuses reports whether balances at a block cannot be read.
func (w *harness) refuses(ctx context.Context, at chain.Ref, holdings []chain.Holding) bool {
	w.mu.Lock()
	failing, recent := w.failing && holdings[0].Address != w.readable, w.recent
	w.mu.Unlock()

	if !recent {
		return failing
	}

	head, err := w.chain.Head(ctx)
	w.must(err)

	return failing || at.Height+8 <= head.Tip.Height
}
