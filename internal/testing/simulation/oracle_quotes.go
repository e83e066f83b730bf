package simulation

import (
	"slices"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// The rules of quotes, values and shares.
const (
	ruleQuoted  = "a quote asks for the price, in whole display steps"
	ruleWorth   = "a value is what arrived at the price, rounded down"
	ruleShares  = "what a release cost is shared by what was deposited"
	ruleAddress = "an address is shown for one invoice or customer"
)

// checkQuotes checks the options of an invoice that were quoted anew.
func (o *oracle) checkQuotes(before, inv invoice.Invoice) {
	if inv.Kind != invoice.Fiat {
		return
	}

	for i, option := range inv.Options {
		if i < len(before.Options) && before.Options[i].QuoteExpiresAt.Equal(option.QuoteExpiresAt) ||
			option.AmountDue.IsZero() || option.Rate.IsZero() {
			continue
		}

		due := option.AmountDue.Big()
		if !due.IsUint64() {
			continue // more than a payer of the simulation has
		}

		step := displayStep(option)
		if shown := option.DisplayStep(); shown != chain.Units(step) {
			o.violate(
				ruleQuoted,
				"invoice %s shows steps of %s of %s, for %d",
				inv.ID,
				shown,
				option.Asset,
				step,
			)
		}

		if due.Uint64()%step != 0 {
			o.violate(
				ruleQuoted,
				"invoice %s asks for %s of %s, and a step is %d",
				inv.ID,
				due,
				option.Asset,
				step,
			)
		}

		o.checkAsked(inv, option, step)
	}
}

// checkAsked checks that what a quote asks for covers what is outstanding, and is no display step more.
func (o *oracle) checkAsked(inv invoice.Invoice, option invoice.Option, step uint64) {
	r := o.receipts(inv)

	outstanding := inv.Price.Sub(r.confirmed).Sub(r.detected)
	if outstanding.Sign() < 0 {
		outstanding = decimal.Zero
	}

	asked := option.AmountDue.SubFloor(option.AmountPaid).SubFloor(option.AmountDetected)
	worth := asked.Decimal(option.Decimals).Mul(option.Rate)
	most := outstanding.Add(chain.Units(step).Decimal(option.Decimals).Mul(option.Rate))

	if worth.Cmp(outstanding) < 0 {
		o.violate(ruleQuoted, "invoice %s asks for %s, and %s is outstanding", inv.ID, worth, outstanding)
	}

	if option.Raise.IsZero() && worth.Cmp(most) >= 0 {
		o.violate(
			ruleQuoted,
			"invoice %s asks for %s, and only %s is outstanding",
			inv.ID,
			worth,
			outstanding,
		)
	}
}

// displayStep returns the largest power of ten in base units that is worth at most a thousandth of the currency.
func displayStep(option invoice.Option) uint64 {
	step := uint64(1)
	for range option.Decimals {
		step *= 10
	}

	for step > 1 && chain.Units(step).Decimal(option.Decimals).Mul(option.Rate).Cmp(decimal.New(1, -3)) > 0 {
		step /= 10
	}

	return step
}

// checkOverpaid compares the flag of an invoice that is paid with what arrived.
func (o *oracle) checkOverpaid(inv invoice.Invoice, r receipts) {
	if inv.Status != invoice.Paid || inv.PaidOptionID == "" {
		return
	}

	option := inv.Option(inv.PaidOptionID)
	if option == nil || inv.Kind != invoice.Fiat && len(inv.Options) > 1 {
		return
	}

	over := r.isOverFiat(inv, *option)
	if inv.Kind != invoice.Fiat {
		over = isOver(inv, *option, r.paid[0])
	}

	if has := inv.Has(invoice.Overpaid); has != over {
		o.violate(
			ruleInvoice,
			"invoice %s is flagged as overpaid: %t, and it should be: %t",
			inv.ID,
			has,
			over,
		)
	}
}

// isOverFiat reports whether the worth of what is confirmed is more than the price, the tolerance, what was raised to
// the smallest amount and one display step.
func (r receipts) isOverFiat(inv invoice.Invoice, option invoice.Option) bool {
	extra := chain.Units(displayStep(option)).Add(option.Raise).Decimal(option.Decimals).Mul(option.Rate)
	tolerance := inv.Price.Mul(decimal.New(int64(inv.ToleranceBPS), -4))

	return r.confirmed.Sub(inv.Price).Sub(tolerance).Cmp(extra) > 0
}

// isOver reports whether base units are more than an option's due, the tolerance rounded down, and one display step.
func isOver(inv invoice.Invoice, option invoice.Option, paid chain.Amount) bool {
	spare := option.AmountDue.Mul(uint64(inv.ToleranceBPS)).Share(chain.Units(1), chain.Units(10_000))

	return option.AmountDue.Add(spare).Add(option.DisplayStep()).Less(paid)
}

// checkWorth checks the value of a payment that has just got one.
func (o *oracle) checkWorth(before, p invoice.Payment) {
	f := o.harness.feed
	if before.USDValue.Valid || !p.USDValue.Valid || p.Simulated || !f.settled() ||
		o.harness.running == nil || o.harness.running.offset != 0 {
		return
	}

	price, err := f.Quote(o.harness.ctx, priceSymbol(p.Asset), "USD")
	if err != nil {
		return
	}

	for _, asset := range o.ledgers[p.Network].network.assets() {
		if asset.ID != p.AssetID {
			continue
		}

		if worth := p.Amount.Decimal(asset.Decimals).
			Mul(price.Rate).
			RoundDown(8); !worth.Equal(
			p.USDValue.Decimal,
		) {
			o.violate(
				ruleWorth,
				"payment %s is worth %s, and %s is on record",
				p.ID,
				worth,
				p.USDValue.Decimal,
			)
		}
	}
}

// checkShares compares, at rest, the shares in the network fees of a release: by gross, to the unit; where outputs are
// spent, by inputs. And it compares what was deposited with what became of it.
func (o *oracle) checkShares() {
	if o.lost {
		return
	}

	o.checkNative()

	bySweep := map[string][]settlement.Settlement{}

	for _, s := range o.records.settlements {
		if s.SweepID != "" && !s.Simulated && s.Status == settlement.Released {
			bySweep[s.SweepID] = append(bySweep[s.SweepID], s)
		}
	}

	for id, all := range bySweep {
		var fees, gross chain.Amount

		for _, s := range all {
			fees, gross = fees.Add(s.NetworkFees), gross.Add(s.Gross)
		}

		isMoved := func(s settlement.Settlement) bool { return o.moved[s.ID] }
		if slices.ContainsFunc(all, isMoved) {
			continue // some bear what another release cost too
		}

		o.checkTotals(all)

		if o.ledgers[all[0].Network].exact {
			o.checkInputShares(id, all, fees)
			continue
		}

		for _, s := range all {
			exact := fees.Share(s.Gross, gross) // a unit more where one is gone that bears its share too
			if s.NetworkFees.Add(chain.Units(1)).Less(exact) ||
				exact.Add(chain.Units(uint64(len(all)))).Less(s.NetworkFees) {
				o.violate(
					ruleShares, "settlement %s bears %s of %s that sweep %s cost, and its part is %s",
					s.ID, s.NetworkFees, fees, id, exact,
				)
			}
		}
	}
}

// noteMoved notes a settlement that was taken back or was part of two releases.
func (o *oracle) noteMoved(before, now settlement.Settlement) {
	if before.SweepID != "" && before.SweepID != now.SweepID || now.Status == settlement.Failed ||
		now.Status == settlement.Reverted {
		o.moved[now.ID] = true
	}
}

// checkShownFor checks that an address is shown for nothing else than before.
func (o *oracle) checkShownFor(a invoice.Address) {
	of := a.InvoiceID + a.DepositAddressID

	if before, known := o.records.shownFor[a.Address]; known && before != of {
		o.violate(ruleAddress, "%s was shown for %s, and is now for %s", a.Address, before, of)
	}

	o.records.shownFor[a.Address] = of
}

// checkNativeFee checks that a platform fee in native coin is worth the one in USD, rounded down to a base unit.
func (o *oracle) checkNativeFee(s settlement.Settlement) {
	for _, asset := range o.ledgers[s.Network].network.assets() {
		if asset.Kind == chain.Token || s.NativePrice.IsZero() {
			continue
		}

		least := s.FeeNative.Decimal(asset.Decimals).Mul(s.NativePrice)
		next := s.FeeNative.Add(chain.Units(1)).Decimal(asset.Decimals).Mul(s.NativePrice)

		if s.FeeUSD.Cmp(least) < 0 || s.FeeUSD.Cmp(next) >= 0 {
			o.violate(
				ruleSums,
				"settlement %s has a fee of %s units, for %s USD",
				s.ID,
				s.FeeNative,
				s.FeeUSD,
			)
		}
	}
}

// checkRefundedWhole checks, at rest, that an invoice whose payments were given back whole is refunded.
func (o *oracle) checkRefundedWhole() {
	if o.lost {
		return
	}

	back := map[string]map[string]chain.Amount{}

	for _, refund := range o.records.refunds {
		if refund.Status != payout.RefundSucceeded || refund.InvoiceID == "" {
			continue
		}

		if back[refund.InvoiceID] == nil {
			back[refund.InvoiceID] = map[string]chain.Amount{}
		}

		sums := back[refund.InvoiceID]
		sums[refund.AssetID] = sums[refund.AssetID].Add(refund.Amount)
	}

	for id, sums := range back {
		whole, any := true, false

		for paymentID := range o.paymentsOf[id] {
			p := o.records.payments[paymentID]
			if p.Status == invoice.Confirmed {
				any = true
				whole = whole && !sums[p.AssetID].Less(p.Amount)
				sums[p.AssetID] = sums[p.AssetID].SubFloor(p.Amount)
			}
		}

		if status := o.records.invoices[id].Status; any && whole && status != invoice.Refunded {
			o.violate(ruleRefunds, "invoice %s is %s, and all that arrived for it was given back", id, status)
		}
	}
}
