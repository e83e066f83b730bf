package invoicestate

import (
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
)

// LostAfter is how long a transaction may be out of both the pool and the chain before its payment
// is dropped.
const LostAfter = 24 * time.Hour // spec D3.4

// clearLost clears the times of a lost transaction.
func clearLost(p *invoice.Payment) { p.LostAt, p.DueAt = time.Time{}, time.Time{} }

// MarkLost records that the payment's transaction is no longer in the pool: after LostAfter it is dropped.
func MarkLost(p *invoice.Payment, now time.Time) error {
	if p.Status != invoice.Detected || !p.Block.IsZero() {
		return refuse(p, "payment_not_waiting", "be lost")
	}

	if p.LostAt.IsZero() {
		p.LostAt = now
		if p.DueAt.IsZero() { // a hint is looked up sooner
			p.DueAt = now.Add(LostAfter)
		}
	}

	return nil
}

// Drop records that the payment's transaction was replaced, double-spent or lost for LostAfter.
func Drop(p *invoice.Payment) ([]event.Type, error) { // spec 6.12
	switch {
	case p.Status == invoice.Dropped:
		return nil, nil
	case p.Status == invoice.Confirmed || !p.Block.IsZero():
		return nil, refuse(p, "payment_in_block", "be dropped")
	}

	types := []event.Type{event.PaymentDropped}
	if p.Status == invoice.Detected {
		types = append(types, event.PaymentLost)
	}

	p.Status = invoice.Dropped
	clearLost(p)

	return types, nil
}
