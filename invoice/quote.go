package invoice

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// quoteFor is the default of Config.QuoteFor.
const quoteFor = 20 * time.Minute

// quote fixes the cost of an option of a fiat invoice until now + holds. rate is the price of one whole unit
// in the invoice's currency, above 0.
//
// Outstanding = price − credits of detected and confirmed payments on all options. AmountDue is the option's
// total: the amount it had received, plus outstanding ÷ rate rounded up to a base unit. The sum is rounded up
// to a whole display step. So AmountDue × rate always pays, and never asks for a full display step too much.
// A first quote below minAmount is fault.Invalid with code amount_too_small, one above chain.MaxTransfer with
// code amount_too_large, both transient. A later remainder is raised to minAmount.
func (inv *Invoice) quote(
	optionID string,
	rate decimal.Decimal,
	minAmount chain.Amount,
	payments []Payment,
	now time.Time,
	holds time.Duration,
) error { // spec D2.2.6
	o := inv.Option(optionID)
	if o == nil {
		return fault.Missing("option", optionID)
	}

	r := inv.receive(payments)
	credited := r.confirmed.Add(r.detected)

	outstanding := inv.Price.Sub(credited)
	if outstanding.Sign() < 0 {
		outstanding = decimal.Decimal{}
	}

	rest, err := chaindata.UnitsFor(outstanding, rate, o.Decimals)
	if err != nil {
		return fault.Wrap(
			err, fault.Invalid, "amount_too_large",
			"the price of invoice %s is more %s than can be sent in one transfer",
			inv.ID, o.Asset,
		).AsTransient()
	}

	first := o.AmountDue.IsZero() && credited.IsZero()
	if first && rest.Less(minAmount) {
		return tooSmall("price.amount", *o, minAmount).AsTransient()
	}

	display := displayDecimals(rate, o.Decimals)
	step := chain.Pow10(o.Decimals - display)
	received := o.AmountPaid.Add(o.AmountDetected)
	asked := received.Add(rest).RoundUpTo(step) // spec 2.2.5

	due := received.Add(chaindata.Max(rest, minAmount)).RoundUpTo(step)
	if chain.MaxTransfer.Less(due) {
		return fault.New(
			fault.Invalid, "amount_too_large",
			"the price of invoice %s is more %s than can be sent in one transfer",
			inv.ID, o.Asset,
		).AsTransient()
	}

	o.AmountDue, o.Raise, o.DisplayDecimals = due, due.Sub(asked), display
	o.Rate, o.QuoteExpiresAt = rate, now.Add(holds)

	return nil
}

func tooSmall(param string, o Option, minAmount chain.Amount) *fault.Error { // spec D2.2.11
	return fault.Param(param, "amount_too_small", "an invoice cannot ask for less than %s %s on %s",
		minAmount.Decimal(o.Decimals), o.Asset, o.Network)
}

// thousandth is the largest step of a shown amount, in units of the currency.
var thousandth = decimal.New(1, -3)

// displayDecimals returns the smallest d ≤ decimals with rate·10^-d ≤ 0.001, or decimals when none fits.
func displayDecimals(rate decimal.Decimal, decimals uint8) uint8 { // spec D2.2.7
	for d := range decimals {
		if rate.Shift(-int32(d)).Cmp(thousandth) <= 0 {
			return d
		}
	}

	return decimals
}
