package simulation

import (
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// The rules of sums.
const (
	ruleInvoice  = "an invoice is what its payments make it"
	ruleCredited = "a payment is credited at the price that holds"
	ruleRefunds  = "no more is refunded than arrived"
	ruleLog      = "each request that a receiver saw is in the log"
	ruleSums     = "sums balance to the base unit"
	ruleTotals   = "what was deposited is what was released, fees and residue"
)

// indexPayments notes which payments an invoice has.
func (o *oracle) indexPayments(c *commit) {
	for id, p := range c.payments {
		if p.InvoiceID == "" {
			continue
		}

		if o.paymentsOf[p.InvoiceID] == nil {
			o.paymentsOf[p.InvoiceID] = map[string]bool{}
		}

		o.paymentsOf[p.InvoiceID][id] = true
	}
}

// checkInvoices checks the invoices that a commit touched, by themselves or by a payment.
func (o *oracle) checkInvoices(c *commit, before map[string]invoice.Invoice) {
	o.indexPayments(c)

	touched := map[string]bool{}
	for id := range c.invoices {
		touched[id] = true
	}

	for _, p := range c.payments {
		touched[p.InvoiceID] = true
	}

	for id := range touched {
		if inv, known := o.records.invoices[id]; known && !inv.Simulated {
			o.checkInvoice(inv)
			o.checkAccepted(before[id], inv)
			o.checkClosed(before[id], inv)
			o.checkQuotes(before[id], inv)
		}
	}

	for id := range c.refunds {
		o.checkRefund(o.records.refunds[id])
	}
}

// receipts is what an invoice's payments sum up to.
type receipts struct {
	// paid and waiting are base units by option.
	paid, waiting []chain.Amount
	// confirmed and detected are their worth in the invoice's currency.
	confirmed, detected decimal.Decimal
	any                 bool
}

// receipts sums the payments of an invoice, each by the address and the asset that it arrived with.
func (o *oracle) receipts(inv invoice.Invoice) receipts {
	r := receipts{
		paid:    make([]chain.Amount, len(inv.Options)),
		waiting: make([]chain.Amount, len(inv.Options)),
	}

	for id := range o.paymentsOf[inv.ID] {
		p := o.records.payments[id]

		for i, option := range inv.Options {
			if p.Address != option.Address || p.Network != option.Network || p.AssetID != option.AssetID {
				continue
			}

			worth := p.Amount.Decimal(option.Decimals).Mul(p.Rate)

			switch p.Status {
			case invoice.Confirmed:
				r.any, r.paid[i], r.confirmed = true, r.paid[i].Add(p.Amount), r.confirmed.Add(worth)
			case invoice.Detected:
				r.waiting[i], r.detected = r.waiting[i].Add(p.Amount), r.detected.Add(worth)
			case invoice.Orphaned, invoice.Dropped:
			}
		}
	}

	return r
}

// pays reports whether what arrived, or also what waits, is as much as an invoice asks for, less the shortfall that
// it allows.
func (r receipts) pays(inv invoice.Invoice, waiting bool) bool {
	if inv.Kind == invoice.Fiat {
		sum := r.confirmed
		if waiting {
			sum = sum.Add(r.detected)
		}

		kept := decimal.New(int64(10_000-inv.ToleranceBPS), -4)

		return sum.Cmp(inv.Price.Mul(kept)) >= 0
	}

	for i, option := range inv.Options {
		sum := r.paid[i]
		if waiting {
			sum = sum.Add(r.waiting[i])
		}

		// (due - sum) * 10000 <= due * tolerance
		short := option.AmountDue.SubFloor(sum).Mul(10_000)
		if !sum.IsZero() && !option.AmountDue.Mul(uint64(inv.ToleranceBPS)).Less(short) {
			return true
		}
	}

	return false
}

// checkInvoice compares the sums and the status of an invoice with its payments.
func (o *oracle) checkInvoice(inv invoice.Invoice) {
	r := o.receipts(inv)

	for i, option := range inv.Options {
		if option.AmountPaid != r.paid[i] || option.AmountDetected != r.waiting[i] {
			o.violate(
				ruleInvoice, "invoice %s shows %s paid and %s detected, and its payments are %s and %s",
				inv.ID, option.AmountPaid, option.AmountDetected, r.paid[i], r.waiting[i],
			)
		}
	}

	accepted := inv.Has(invoice.Late) || inv.Has(invoice.UnderpaidAccepted)
	if accepted || inv.Status == invoice.Refunded || inv.ClosedAs != "" {
		return
	}

	should := invoice.Open

	switch {
	case r.pays(inv, false):
		should = invoice.Paid
	case r.pays(inv, true):
		should = invoice.Pending
	case r.any:
		should = invoice.Underpaid
	}

	if inv.Status != should {
		o.violate(ruleInvoice, "invoice %s is %s, and its payments make it %s", inv.ID, inv.Status, should)
	}

	o.checkOverpaid(inv, r)
}

// checkAccepted checks that money that came late pays by itself only where the account says so.
func (o *oracle) checkAccepted(before, inv invoice.Invoice) {
	if inv.Has(invoice.Late) && !before.Has(invoice.Late) && !inv.AcceptLate && !o.harness.accepting {
		o.violate(ruleInvoice, "invoice %s is paid by late money that nobody accepted", inv.ID)
	}
}

// checkClosed checks that an open invoice is closed only when no payment of it may return. One that late money had paid
// is closed again without it.
func (o *oracle) checkClosed(before, inv invoice.Invoice) {
	if before.Status != invoice.Open && before.Status != invoice.Underpaid ||
		inv.Status != invoice.Expired && inv.Status != invoice.Canceled {
		return
	}

	for id := range o.paymentsOf[inv.ID] {
		if o.records.payments[id].Status == invoice.Orphaned {
			o.violate(ruleInvoice, "invoice %s is %s, and its payment %s may return", inv.ID, inv.Status, id)
		}
	}
}

// checkCredited checks the rate of a payment that is new: the quote's, or the price of the moment once that ran out.
func (o *oracle) checkCredited(before map[string]invoice.Payment, p invoice.Payment) {
	inv := o.records.invoices[p.InvoiceID]
	option := inv.Option(p.OptionID)

	if _, known := before[p.ID]; known || option == nil || inv.Kind != invoice.Fiat ||
		p.Block.Time.IsZero() || p.Simulated {
		return
	}

	f := o.harness.feed
	quoted := !p.Block.Time.After(option.QuoteExpiresAt)

	if quoted || !f.settled() || o.harness.running == nil || o.harness.running.offset != 0 {
		return
	}

	now, err := f.Quote(o.harness.ctx, priceSymbol(p.Asset), inv.Currency)
	if err == nil && !p.Rate.Equal(now.Rate) {
		o.violate(
			ruleCredited,
			"payment %s was made after its quote ran out and is credited at %s; the price is %s",
			p.ID,
			p.Rate,
			now.Rate,
		)
	}
}

// priceSymbol returns what the feed knows an asset of the simulated networks as.
func priceSymbol(symbol string) string {
	return map[string]string{"SIM": "ETH", "USDX": "USDC", "SIMB": "BTC"}[symbol]
}

// checkRefund checks that the refunds of an invoice are not more than what arrived for it.
func (o *oracle) checkRefund(refund payout.Refund) {
	if refund.Simulated || refund.Status != payout.RefundPending {
		return
	}

	var arrived, back chain.Amount

	for id := range o.paymentsOf[refund.InvoiceID] {
		if p := o.records.payments[id]; p.AssetID == refund.AssetID && p.Network == refund.Network &&
			p.Status == invoice.Confirmed {
			arrived = arrived.Add(p.Amount)
		}
	}

	for _, other := range o.records.refunds {
		gone := other.Status == payout.RefundFailed || other.Status == payout.RefundCanceled
		if other.InvoiceID == refund.InvoiceID && other.AssetID == refund.AssetID &&
			other.Network == refund.Network && !gone {
			back = back.Add(other.Amount)
		}
	}

	if _, known := o.refundsSeen[refund.ID]; !known && arrived.Less(back) {
		o.violate(
			ruleRefunds,
			"%s arrived for invoice %s and %s is refunded",
			arrived,
			refund.InvoiceID,
			back,
		)
	}

	o.refundsSeen[refund.ID] = true
}

// checkRefunded checks that an invoice that becomes refunded was given back whole, and that nothing of it waits.
func (o *oracle) checkRefunded(inv invoice.Invoice) {
	sums := map[string]chain.Amount{}

	for id := range o.paymentsOf[inv.ID] {
		switch p := o.records.payments[id]; p.Status {
		case invoice.Confirmed:
			sums[p.AssetID] = sums[p.AssetID].Add(p.Amount)
		case invoice.Detected, invoice.Orphaned:
			o.violate(ruleRefunds, "invoice %s is refunded, and payment %s is %s", inv.ID, id, p.Status)
		case invoice.Dropped:
		}
	}

	for _, refund := range o.records.refunds {
		if refund.InvoiceID == inv.ID && refund.Status == payout.RefundSucceeded {
			sums[refund.AssetID] = sums[refund.AssetID].SubFloor(refund.Amount)
		}
	}

	for asset, rest := range sums {
		if !rest.IsZero() {
			o.violate(ruleRefunds, "invoice %s is refunded, and %s of %s is not", inv.ID, rest, asset)
		}
	}
}

// checkFee checks the arithmetic of a settlement's platform fee.
func (o *oracle) checkFee(s settlement.Settlement) {
	if paid, due := s.FeePaid.Add(s.FeeCarried), s.FeeNative.Add(s.CarriedIn); paid != due {
		o.violate(ruleSums, "settlement %s paid and carries %s of %s", s.ID, paid, due)
	}

	if s.Simulated {
		return
	}

	exact := s.USDValue.Mul(decimal.New(int64(s.FeeBPS), -4))
	if s.FeeUSD.Cmp(exact) > 0 || s.FeeUSD.Add(decimal.New(1, -8)).Cmp(exact) <= 0 {
		o.violate(ruleSums, "settlement %s has a fee of %s USD, of %s", s.ID, s.FeeUSD, exact)
	}

	o.checkNativeFee(s)
}

// checkSums compares, at rest, what settlements say was released with what sweeps brought to the master wallets, and
// the balances on record with those of the chain. Records that were lost do not balance.
func (o *oracle) checkSums() {
	released, reverted := map[place]chain.Amount{}, map[place]bool{}

	for _, s := range o.records.settlements {
		at := place{s.Network, chain.Holding{Address: s.MasterWalletAddress, AssetID: s.AssetID}}
		p := o.records.payments[s.PaymentID]

		switch {
		case s.Simulated:
		case s.Status == settlement.Released && s.NetReleased != nil:
			released[at] = released[at].Add(*s.NetReleased)

			if s.Gross != p.Amount && !o.lost {
				o.violate(ruleSums, "settlement %s is of %s, and its payment of %s", s.ID, s.Gross, p.Amount)
			}
		case s.Status == settlement.Reverted || s.Status == settlement.Failed:
			reverted[at] = true
		}
	}

	for at := range o.records.balances {
		l := o.ledgers[at.network]
		swept := l.tip().arrived[at.Holding].swept

		if l.exact || o.lost {
			continue
		}

		if swept.Less(released[at]) || released[at].Less(swept) && !reverted[at] {
			o.violate(
				ruleSums, "sweeps brought %s of %s to %s, and settlements say that %s was released",
				swept, o.symbol(at), at.Address, released[at],
			)
		}
	}

	o.checkFeesPaid()
	o.checkBalances()
}

// checkBalances compares the balances on record with those of the chain at their blocks.
func (o *oracle) checkBalances() {
	for at, b := range o.records.balances {
		l := o.ledgers[at.network]
		if l.exact || b.At.Height >= uint64(len(l.canonical)) {
			continue
		}

		if held := l.network.balances(b.At.Height, []chain.Holding{at.Holding})[0]; held != b.OnChain {
			o.violate(
				ruleSums, "%s held %s of %s at block %d, and %s is on record",
				at.Address, held, o.symbol(at), b.At.Height, b.OnChain,
			)
		}
	}
}
