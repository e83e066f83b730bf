package sweep

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/settlement"
)

// movable tells what of a group can be released now, and which coins hold it, in its order, where
// the network spends outputs. What is being bumped, or is not in the book of coins, must not keep
// the others waiting: what of it is due is put off, and what stays missing fails by itself.
func (p *planningRun) releasable(ctx context.Context, g, due group) (now group, coins []chain.Coin, err error) {
	if !p.spendsCoins || len(g) == 0 {
		return g, nil, nil
	}

	outputs, held, bumped, err := p.depositCoins(ctx, g)
	if err != nil {
		return nil, nil, err
	}

	var late, missing group

	for _, s := range g {
		at := outputs[s.PaymentID]

		c, ok := held[at]
		switch {
		case ok:
			now, coins = append(now, s), append(coins, c.Coin)
		case !bumped[at] && p.now().Sub(s.ConfirmedAt) >= fundsGrace:
			missing = append(missing, s)
		case slices.ContainsFunc(due, func(d settlement.Settlement) bool { return d.ID == s.ID }):
			late = append(late, s)
		}
	}

	if len(late) > 0 {
		if err := p.postpone(ctx, late); err != nil {
			return nil, nil, err
		}
	}

	if len(missing) > 0 {
		if err := p.fail(ctx, missing, settlement.FundsMissing); err != nil {
			return nil, nil, err
		}
	}

	return now, coins, nil
}

// coins returns the outputs that hold the deposits of a release under way, where the network has
// outputs. One that is not in the book, or spent, is fault.State with code funds_missing; one that
// is being bumped with code deposit_lifted.
func (p *planningRun) coinsOf(ctx context.Context, g group) ([]chain.Coin, error) {
	if !p.spendsCoins {
		return nil, nil
	}

	outputs, held, bumped, err := p.depositCoins(ctx, g)
	if err != nil {
		return nil, err
	}

	coins := make([]chain.Coin, 0, len(g))
	for _, s := range g {
		c, ok := held[outputs[s.PaymentID]]
		switch {
		case bumped[outputs[s.PaymentID]]:
			return nil, fault.New(
				fault.State, "deposit_lifted", "the output of payment %s is being lifted",
				s.PaymentID,
			)
		case !ok:
			return nil, fault.New(
				fault.State, "funds_missing",
				"the output of payment %s is not in the chain, or spent",
				s.PaymentID,
			)
		}

		coins = append(coins, c.Coin)
	}

	return coins, nil
}

// held reads which outputs paid a group, by payment id, and what holds their money now; see send.Held.
func (p *planningRun) depositCoins(
	ctx context.Context,
	g group,
) (outputs map[string]chain.Outpoint, held map[chain.Outpoint]wallet.Coin, bumped map[chain.Outpoint]bool, err error) {
	payments := make([]string, len(g))
	for i, s := range g {
		payments[i] = s.PaymentID
	}

	if outputs, err = p.config.Outputs(ctx, payments); err != nil {
		return nil, nil, nil, &storeError{err}
	}

	if held, bumped, err = txmgr.CoinsOfPayments(
		ctx, p.db, p.network.Slug, slices.Collect(maps.Values(outputs)),
	); err != nil {
		return nil, nil, nil, &storeError{err}
	}

	return outputs, held, bumped, nil
}
