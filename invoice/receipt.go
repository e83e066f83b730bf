package invoice

import (
	"cmp"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
)

// receipt sums the payments of an invoice.
type receipt struct {
	// confirmed and detected are sums of credits, in the invoice's currency; 0 for crypto invoices.
	confirmed, detected decimal.Decimal
	// any is set when some payment is confirmed, credited or not; credited when one pays towards an option.
	any, credited bool
}

// receive sets the sums of the options from the payments, and returns the receipt.
func (inv *Invoice) receive(payments []Payment) receipt { // spec 2.2.8
	var r receipt

	paid, detected := make([]chain.Amount, len(inv.Options)), make([]chain.Amount, len(inv.Options))
	for _, p := range payments {
		i := slices.IndexFunc(inv.Options, func(o Option) bool { return o.ID == p.OptionID })
		switch {
		case p.Status == Confirmed:
			r.any = true
			if i >= 0 {
				r.credited = true
				r.confirmed = r.confirmed.Add(p.Credit)
				paid[i] = paid[i].Add(p.Amount)
			}
		case p.Status == Detected && i >= 0:
			r.detected = r.detected.Add(p.Credit)
			detected[i] = detected[i].Add(p.Amount)
		}
	}

	for i := range inv.Options {
		o := &inv.Options[i]
		o.AmountPaid, o.AmountDetected = paid[i], detected[i]
	}

	return r
}

// payingOption returns the id of the option of the payment that completed the amount, or of the latest
// payment if the invoice was accepted.
func (inv *Invoice) payingOption(payments []Payment) string {
	var confirmed []Payment

	for _, p := range payments {
		if p.Status == Confirmed && p.OptionID != "" {
			confirmed = append(confirmed, p)
		}
	}

	slices.SortFunc(confirmed, func(a, b Payment) int {
		return cmp.Or(a.ConfirmedAt.Compare(b.ConfirmedAt), cmp.Compare(a.ID, b.ID))
	})

	trial := Invoice{Kind: inv.Kind, Price: inv.Price, ToleranceBPS: inv.ToleranceBPS}
	r, last := receipt{}, ""

	for _, o := range inv.Options {
		o.AmountPaid, o.AmountDetected = chain.Amount{}, chain.Amount{}
		trial.Options = append(trial.Options, o)
	}

	for _, p := range confirmed {
		o := trial.Option(p.OptionID)
		if o == nil {
			continue
		}

		o.AmountPaid, r.confirmed, last = o.AmountPaid.Add(p.Amount), r.confirmed.Add(p.Credit), o.ID
		if trial.enough(r, false) {
			break
		}
	}

	return last
}
