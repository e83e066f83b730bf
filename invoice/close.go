package invoice

import (
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// Cancel cancels an open or underpaid invoice; a canceled one stays as it is. Refusals are fault.State.
func (inv *Invoice) Cancel(payments []Payment, now time.Time) ([]event.Type, error) {
	if inv.Status == Canceled {
		return nil, nil
	}

	if inv.Status != Open && inv.Status != Underpaid {
		return nil, inv.refuseClosing("be canceled")
	}

	if err := inv.refuseOrphaned(payments); err != nil {
		return nil, err
	}

	return inv.close(Canceled, payments, now), nil
}

// close sets ClosedAs and its time, and recomputes the invoice.
func (inv *Invoice) close(as Status, payments []Payment, now time.Time) []event.Type {
	inv.ClosedAs = as
	if as == Expired {
		inv.ExpiredAt = now
	} else {
		inv.CanceledAt = now
	}

	return inv.Recompute(payments, now)
}

// refuseClosing returns the error of an invoice whose status does not allow the operation.
func (inv *Invoice) refuseClosing(what string) error { // spec D2.3.5
	if inv.Status == Pending {
		return fault.New(
			fault.State, "invoice_payment_pending",
			"invoice %s waits for a payment to confirm, so it cannot %s",
			inv.ID, what,
		)
	}

	return fault.New(
		fault.State, "invoice_not_open", "invoice %s is %s, so it cannot %s",
		inv.ID, inv.Status, what,
	)
}

// refuseOrphaned returns an error while a payment is orphaned and not yet dropped: it may return.
func (inv *Invoice) refuseOrphaned(payments []Payment) error { // spec D2.3.11
	for _, p := range payments {
		if p.Status == Orphaned {
			return fault.New(
				fault.State,
				"invoice_payment_pending",
				"payment %s of invoice %s was taken back by a reorganisation and may return; wait until "+
					"it confirms or is dropped",
				p.ID,
				inv.ID,
			)
		}
	}

	return nil
}

// Closed reports whether the invoice is expired or canceled, or was before its refund. A payment that
// confirms then is late.
func (inv *Invoice) Closed() bool { // spec 2.7.5
	return inv.Status == Expired || inv.Status == Canceled || inv.Status == Refunded && inv.ClosedAs != ""
}
