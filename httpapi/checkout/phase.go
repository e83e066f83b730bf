package checkout

import (
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/invoice"
)

// Phase is the state of an invoice for its payer; it decides what the page shows.
type Phase string

// The phases. Clients must accept unknown ones.
const (
	// Choose an option; none was selected yet.
	Choose Phase = "choose"
	// Pay the amount to the address.
	Pay Phase = "pay"
	// QuoteExpired: the quote expired; selecting the option again renews it.
	QuoteExpired Phase = "quote_expired"
	// Seen: the whole amount is in the mempool, not in a block yet.
	Seen Phase = "seen"
	// Confirming: the whole amount is in blocks, not confirmed yet.
	Confirming Phase = "confirming"
	// Interrupted: a payment's block was orphaned. It usually returns, so the payer should send nothing.
	Interrupted Phase = "interrupted"
	// Underpaid: less than the amount arrived.
	Underpaid Phase = "underpaid"
	// Closing: the invoice's time is over, and blocks from before are still being read.
	Closing Phase = "closing"
	// Paid, Expired, Canceled and Refunded are the invoice's status of that name.
	Paid     Phase = "paid"
	Expired  Phase = "expired"
	Canceled Phase = "canceled"
	Refunded Phase = "refunded"
	// Late: a payment arrived, and the invoice has expired or was canceled.
	Late Phase = "late"
)

// phaseOf returns the phase of the invoice; arrived is whether a payment counts.
func phaseOf(f snapshot, selected *invoice.Option, arrived bool) Phase {
	inv := &f.Invoice
	switch inv.Status {
	case invoice.Paid:
		return Paid
	case invoice.Refunded:
		return Refunded
	case invoice.Expired, invoice.Canceled:
		switch {
		case arrived:
			return Late
		case inv.Status == invoice.Expired:
			return Expired
		}

		return Canceled
	case invoice.Pending:
		if p := slowestPayment(f); p != nil && p.Block.IsZero() && !p.Simulated {
			return Seen
		}

		return Confirming
	case invoice.Open, invoice.Underpaid:
		return openPhase(f, selected, arrived)
	}

	return Pay
}

// openPhase returns the phase of an invoice that is open or underpaid.
func openPhase(f snapshot, selected *invoice.Option, arrived bool) Phase {
	inv := &f.Invoice

	orphaned := func(p invoice.Payment) bool { return p.Status == invoice.Orphaned && p.OptionID != "" }

	switch {
	case slices.ContainsFunc(f.Payments, orphaned):
		return Interrupted
	case selected == nil && !f.Now.Before(inv.PreSelectionExpiresAt), !f.Now.Before(inv.ExpiresAt):
		return Closing
	case inv.Status == invoice.Underpaid || arrived:
		return Underpaid
	case selected == nil:
		return Choose
	case quoteExpired(inv, selected, f.Now):
		return QuoteExpired
	}

	return Pay
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

// quoteExpired reports whether an option's amount no longer says what to pay: its quote expired, or all of it
// arrived at another price. Amounts of crypto invoices never expire.
func quoteExpired(inv *invoice.Invoice, o *invoice.Option, now time.Time) bool { // spec D10.9
	return inv.Kind == invoice.Fiat && (!now.Before(o.QuoteExpiresAt) || missing(o).IsZero())
}
