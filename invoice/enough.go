package invoice

import (
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// This file decides whether the received amount is enough, or too much.

// standing returns the status that the payments alone give: it ignores closing, acceptance and refunds.
func (inv *Invoice) standing(r receipt) Status { // spec D2.3.2
	switch {
	case inv.enough(r, false):
		return Paid
	case inv.enough(r, true):
		return Pending
	case r.credited:
		return Underpaid
	}

	return Open
}

// enough reports whether the confirmed amount, or with waiting the confirmed and the detected amount, pays
// the invoice. The allowed shortfall is exact in money and rounded down in base units.
func (inv *Invoice) enough(r receipt, waiting bool) bool { // spec D2.3.1
	if inv.Kind == Fiat {
		sum := r.confirmed
		if waiting {
			sum = sum.Add(r.detected)
		}

		return sum.Cmp(inv.Price.Sub(inv.tolerance())) >= 0
	}

	for _, o := range inv.Options {
		sum := o.AmountPaid
		if waiting {
			sum = sum.Add(o.AmountDetected)
		}

		if !sum.IsZero() && !sum.Less(o.AmountDue.Sub(chaindata.BPS(o.AmountDue, inv.ToleranceBPS))) {
			return true
		}
	}

	return false
}

// short reports whether the confirmed amount is below the amount due, without the tolerance.
func (inv *Invoice) short(r receipt) bool {
	exact := *inv
	exact.ToleranceBPS = 0

	return !exact.enough(r, false)
}

// tolerance returns the allowed difference in the invoice's currency, exact.
func (inv *Invoice) tolerance() decimal.Decimal {
	return inv.Price.Mul(decimal.New(int64(inv.ToleranceBPS), -4))
}

// overpaid reports whether the confirmed amount exceeds the amount due by more than the tolerance and one
// display step. A remainder that was raised to the asset's minimum counts as due. Of an invoice with crypto
// amounts each option is compared by itself. Only the option that paid it was due, so an amount on another
// option is too much. If no option was enough, an accepted amount is not too much.
func (inv *Invoice) overpaid(r receipt) bool { // spec D2.3.3
	if inv.Kind == Fiat {
		limit := inv.Price.Add(inv.tolerance())
		if o := inv.Option(inv.PaidOptionID); o != nil {
			limit = limit.Add(o.DisplayStep().Add(o.Raise).Decimal(o.Decimals).Mul(o.Rate))
		}

		return r.confirmed.Cmp(limit) > 0
	}

	if !inv.enough(r, false) {
		return false
	}

	for _, o := range inv.Options {
		limit := chaindata.BPS(o.AmountDue, inv.ToleranceBPS).Add(o.DisplayStep())
		if o.ID == inv.PaidOptionID {
			limit = limit.Add(o.AmountDue)
		}

		if limit.Less(o.AmountPaid) {
			return true
		}
	}

	return false
}
