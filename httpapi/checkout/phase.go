package checkout

import (
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/invoice"
)

// phase is the state of an invoice for its payer; it decides the content of the page.
type phase string

// The phases. Clients must accept unknown ones.
const (
	// phaseChoose an option; none was selected yet.
	phaseChoose phase = "choose"
	// phasePay the amount to the address.
	phasePay phase = "pay"
	// phaseQuoteExpired: the quote expired; selecting the option again renews it.
	phaseQuoteExpired phase = "quote_expired"
	// phaseSeen: the whole amount is in the mempool, not in a block yet.
	phaseSeen phase = "seen"
	// phaseConfirming: the whole amount is in blocks, not confirmed yet.
	phaseConfirming phase = "confirming"
	// phaseInterrupted: a payment's block was orphaned. It usually returns, so the payer should send nothing.
	phaseInterrupted phase = "interrupted"
	// phaseUnderpaid: less than the amount arrived.
	phaseUnderpaid phase = "underpaid"
	// phaseClosing: the invoice's time is over, and blocks from before are still being read.
	phaseClosing phase = "closing"
	// phasePaid, Expired, Canceled and Refunded are the invoice's status of that name.
	phasePaid     phase = "paid"
	phaseExpired  phase = "expired"
	phaseCanceled phase = "canceled"
	phaseRefunded phase = "refunded"
	// phaseLate: a payment arrived, and the invoice has expired or was canceled.
	phaseLate phase = "late"
)

// phaseOf returns the phase of the invoice; arrived is whether a payment counts.
func phaseOf(f snapshot, selected *invoice.Option, arrived bool) phase {
	inv := &f.Invoice
	switch inv.Status {
	case invoice.Paid:
		return phasePaid
	case invoice.Refunded:
		return phaseRefunded
	case invoice.Expired, invoice.Canceled:
		switch {
		case arrived:
			return phaseLate
		case inv.Status == invoice.Expired:
			return phaseExpired
		}

		return phaseCanceled
	case invoice.Pending:
		if p := slowestPayment(f); p != nil && p.Block.IsZero() && !p.Simulated {
			return phaseSeen
		}

		return phaseConfirming
	case invoice.Open, invoice.Underpaid:
		return openPhase(f, selected, arrived)
	}

	return phasePay
}

// openPhase returns the phase of an invoice that is open or underpaid.
func openPhase(f snapshot, selected *invoice.Option, arrived bool) phase {
	inv := &f.Invoice

	orphaned := func(p invoice.Payment) bool { return p.Status == invoice.Orphaned && p.OptionID != "" }

	switch {
	case slices.ContainsFunc(f.Payments, orphaned):
		return phaseInterrupted
	case selected == nil && !f.Now.Before(inv.PreSelectionExpiresAt), !f.Now.Before(inv.ExpiresAt):
		return phaseClosing
	case inv.Status == invoice.Underpaid || arrived:
		return phaseUnderpaid
	case selected == nil:
		return phaseChoose
	case quoteExpired(inv, selected, f.Now):
		return phaseQuoteExpired
	}

	return phasePay
}

// slowestPayment returns the detected payment with the most confirmations missing, or nil.
func slowestPayment(f snapshot) *invoice.Payment {
	var (
		found *invoice.Payment
		most  uint64
	)

	for i := range f.Payments {
		p := &f.Payments[i]
		if p.Status != invoice.Detected {
			continue
		}

		remaining := p.Required - min(p.Required, f.confirmations(*p))
		if p.Block.IsZero() {
			remaining++ // a payment without a block is slower than one that lacks confirmations
		}

		if found == nil || remaining > most {
			found, most = p, remaining
		}
	}

	return found
}

// confirmations returns a payment's confirmations at the newest known block, at least the payment's own.
func (f snapshot) confirmations(p invoice.Payment) uint64 {
	return p.ConfirmationsAt(max(f.NetworkStatuses[p.Network].Tip, p.Block.Height))
}

// quoteExpired reports whether an option's amount is no longer the amount to pay: its quote expired, or all
// of it arrived at another price. Amounts of crypto invoices never expire.
func quoteExpired(inv *invoice.Invoice, o *invoice.Option, now time.Time) bool { // spec D10.9
	return inv.Kind == invoice.Fiat && (!now.Before(o.QuoteExpiresAt) || missing(o).IsZero())
}
