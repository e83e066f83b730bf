package ingest

import (
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// This file holds how many confirmations a payment needs.

// setRequired sets how many confirmations the unconfirmed payments of an entry need. The tier follows the USD
// sum of those in blocks, and is the highest one while a price is missing: what a pool shows raises nothing.
func (l *ledger) setRequired(a *entry) error { // spec D3.12
	var sum decimal.Decimal

	summed, priced := false, true

	for _, p := range a.payments {
		if p.Status != invoice.Detected || p.Simulated {
			continue
		}

		n, ok := l.s.registry.Network(p.Network)
		if !ok {
			continue
		}

		if !summed && n.Rule == chain.RuleConfirmations && len(n.Tiers) > 0 {
			var err error
			if sum, priced, err = l.unconfirmedUSD(a); err != nil {
				return err
			}

			summed = true
		}

		if need := confirmationsFor(n, sum, priced); need != p.Required {
			p.Required = need
			l.changed(a, p)
		}
	}

	return nil
}

// unconfirmedUSD returns the sum in USD of the unconfirmed payments; priced is false while a price
// is missing.
func (l *ledger) unconfirmedUSD(a *entry) (sum decimal.Decimal, priced bool, err error) {
	for _, p := range a.payments {
		if p.Status != invoice.Detected || p.Simulated || p.Block.IsZero() {
			continue
		}

		asset, _, err := l.s.registry.AssetByID(p.Network, p.AssetID)
		if err != nil {
			return sum, false, nil // not served here any more: the highest tier
		}

		r, ok, err := l.price(chaindata.PriceSymbol(asset), usd)
		if err != nil || !ok {
			return sum, false, err
		}

		sum = sum.Add(invoicestate.CreditOf(p.Amount, p.Decimals, r))
	}

	return sum, true, nil
}

// confirmationsFor returns how many confirmations a network requires for a sum in USD. Under the
// finality rules it is the fall-back depth.
func confirmationsFor(n chain.Network, sum decimal.Decimal, priced bool) uint64 { // spec 2.7.6
	need := n.Confirmations
	if n.Rule != chain.RuleConfirmations {
		return need
	}

	for _, tier := range n.Tiers {
		switch {
		case !priced:
			need = max(need, tier.Confirmations)
		case sum.Cmp(tier.FromUSD) >= 0:
			need = tier.Confirmations
		}
	}

	return need
}
