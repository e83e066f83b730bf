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

// releasable returns the settlements of a group that can be released now, and the coins that hold them,
// in its order. Settlements whose coin is being CPFP-bumped, is immature or is missing from the UTXO index are
// postponed, if due. They fail with funds_missing after fundsGrace.
func (p *planningRun) releasable(
	ctx context.Context,
	g, due group,
) (now group, coins []chain.Coin, err error) {
	if !p.spendsCoins || len(g) == 0 {
		return g, nil, nil
	}

	outputs, held, waiting, err := p.depositCoins(ctx, g)
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
		case !waiting[at] && p.now().Sub(s.ConfirmedAt) >= fundsGrace:
			missing = append(missing, s)
		case slices.ContainsFunc(due, func(d settlement.Settlement) bool { return d.ID == s.ID }):
			late = append(late, s)
		}
	}

	if len(late) > 0 {
		if err := p.postpone(ctx, late, waitsForCoins); err != nil {
			return nil, nil, err
		}
	}

	if len(missing) > 0 {
		if err := p.failMissing(ctx, missing); err != nil {
			return nil, nil, err
		}
	}

	return now, coins, nil
}

// coinsOf returns the coins that hold a live release's deposits; nil where the network has none. Errors:
// fault.State with code funds_missing for a coin that is spent or not in the UTXO index, and with code
// deposit_waiting for one that is being CPFP-bumped, or is an immature block reward.
func (p *planningRun) coinsOf(ctx context.Context, g group) ([]chain.Coin, error) {
	if !p.spendsCoins {
		return nil, nil
	}

	outputs, held, waiting, err := p.depositCoins(ctx, g)
	if err != nil {
		return nil, err
	}

	coins := make([]chain.Coin, 0, len(g))
	for _, s := range g {
		c, ok := held[outputs[s.PaymentID]]
		switch {
		case waiting[outputs[s.PaymentID]]:
			return nil, fault.New(
				fault.State, "deposit_waiting", "the output of payment %s is being bumped, or immature",
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

// depositCoins reads the outputs that paid a group, by payment id, and the coins that hold their money
// now; see txmgr.CoinsOfPayments.
func (p *planningRun) depositCoins(
	ctx context.Context,
	g group,
) (outputs map[string]chain.Outpoint, held map[chain.Outpoint]wallet.Coin, waiting map[chain.Outpoint]bool, err error) {
	payments := make([]string, len(g))
	for i, s := range g {
		payments[i] = s.PaymentID
	}

	if outputs, err = p.config.Outputs(ctx, payments); err != nil {
		return nil, nil, nil, &storeError{err}
	}

	if held, waiting, err = txmgr.CoinsOfPayments(
		ctx, p.db, p.network.Slug, slices.Collect(maps.Values(outputs)),
	); err != nil {
		return nil, nil, nil, &storeError{err}
	}

	return outputs, held, waiting, nil
}
