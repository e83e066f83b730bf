package invoice

import (
	"time"

	"github.com/seed-8ee7f392/payments/event"
)

// LostAfter is how long a transaction may be out of both the pool and the chain before its payment
// is dropped.
const LostAfter = 24 * time.Hour // spec D3.4

// clearLost clears the times of a lost transaction.
func (p *Payment) clearLost() { p.LostAt, p.DueAt = time.Time{}, time.Time{} }

// MarkLost records that the pool does not have the payment's transaction any more: after LostAfter it is dropped.
func (p *Payment) MarkLost(now time.Time) error {
	if p.Status != Detected || !p.Block.IsZero() {
		return p.refuse("payment_not_waiting", "be lost")
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
func (p *Payment) Drop() ([]event.Type, error) { // spec 6.12
	switch {
	case p.Status == Dropped:
		return nil, nil
	case p.Status == Confirmed || !p.Block.IsZero():
		return nil, p.refuse("payment_in_block", "be dropped")
	}

	types := []event.Type{event.PaymentDropped}
	if p.Status == Detected {
		types = append(types, event.PaymentLost)
	}

	p.Status = Dropped
	p.clearLost()

	return types, nil
}
