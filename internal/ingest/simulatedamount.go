package ingest

import (
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/invoice"
)

// simulatedAmount returns the base units that lead to an outcome: what is missing, half of it (at least 1 base unit),
// or a tenth of all more, which exceeds any tolerance. A late payment is what the quote asked for.
func (l *ledger) simulatedAmount(
	a *entry,
	o invoice.Option,
	asset chain.Asset,
	outcome invoice.Outcome,
) (chain.Amount, error) { // spec 3.1.3
	received := o.AmountPaid
	if !pays(outcome) {
		received = received.Add(o.AmountDetected)
	}

	all, missing := o.AmountDue, o.AmountDue.SubFloor(received)

	if a.invoice.Kind == invoice.Fiat && outcome != invoice.SimulateLate {
		rate, err := l.creditRate(a.invoice, o, l.now, asset)
		if err != nil {
			return chain.Amount{}, err
		}

		all, err = chaindata.UnitsFor(a.invoice.Price, rate, o.Decimals)
		if err != nil {
			return chain.Amount{}, err
		}

		if missing, err = chaindata.UnitsFor(a.outstanding(pays(outcome)), rate, o.Decimals); err != nil {
			return chain.Amount{}, err
		}

		if !missing.IsZero() {
			missing = received.Add(missing).RoundUpTo(o.DisplayStep()).Sub(received)
		}
	}

	if a.invoice.Status == invoice.Paid || missing.IsZero() {
		missing = all.RoundUpTo(o.DisplayStep())
	}

	switch outcome {
	case invoice.SimulateUnderpaid:
		return chaindata.Max(chaindata.BPS(missing, 5000), chain.Units(1)), nil
	case invoice.SimulateOverpaid:
		more := chaindata.BPS(all, 1000).Add(o.Raise).Add(o.DisplayStep()).Add(o.DisplayStep())
		return missing.Add(more), nil
	default:
		return missing, nil
	}
}

// outstanding returns what a fiat invoice's price exceeds its credits by, in its currency: those of confirmed payments,
// and of detected ones unless confirmed alone count.
func (a *entry) outstanding(confirmed bool) decimal.Decimal {
	rest := a.invoice.Price

	for _, p := range a.payments {
		if p.Status == invoice.Confirmed || p.Status == invoice.Detected && !confirmed {
			rest = rest.Sub(p.Credit)
		}
	}

	return decimal.Max(rest, decimal.Zero)
}

// pays reports whether an outcome pays an invoice by confirmed payments alone, whatever else is detected.
func pays(outcome invoice.Outcome) bool {
	return outcome == invoice.SimulatePaid || outcome == invoice.SimulateOverpaid ||
		outcome == invoice.SimulateLate
}
