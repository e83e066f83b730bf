package invoice

import (
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// Expire expires an open or underpaid invoice after its deadline; an expired one stays as it is.
// scanned is the block time up to which each network has been read. An invoice with a selection
// expires only once all its networks have been read up to its end, so that our own lag never harms
// the payer. Errors:
//
//   - fault.State, invoice_payment_pending: a payment is pending or may return
//   - fault.State, invoice_not_open: the invoice is in another status
//   - fault.State, invoice_not_due: before the deadline, or a network was not read up to it
func (inv *Invoice) Expire(
	payments []Payment,
	scanned map[string]time.Time,
	now time.Time,
) ([]event.Type, error) { // spec D2.3.4
	if inv.Status == Expired {
		return nil, nil
	}

	if inv.Status != Open && inv.Status != Underpaid {
		return nil, inv.refuseClosing("expire")
	}

	if err := inv.refuseOrphaned(payments); err != nil {
		return nil, err
	}

	if now.Before(inv.Deadline()) {
		return nil, fault.New(
			fault.State, "invoice_not_due", "invoice %s expires at %s", inv.ID, inv.Deadline(),
		)
	}

	for _, o := range inv.Options { // spec D2.3.10
		if o.Selected() && scanned[o.Network].Before(inv.ExpiresAt) {
			return nil, fault.New(
				fault.State, "invoice_not_due",
				"network %s has not been read up to the end of invoice %s",
				o.Network, inv.ID,
			)
		}
	}

	return inv.close(Expired, payments, now), nil
}

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

// ExpireNow expires an open or underpaid invoice before its deadline, for simulations. A closed one
// stays as it is. Refusals are fault.State.
func (inv *Invoice) ExpireNow(payments []Payment, now time.Time) ([]event.Type, error) {
	if inv.Closed() {
		return nil, nil
	}

	if inv.Status != Open && inv.Status != Underpaid {
		return nil, inv.refuseClosing("expire")
	}

	if err := inv.refuseOrphaned(payments); err != nil {
		return nil, err
	}

	return inv.close(Expired, payments, now), nil
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

// refuseClosing returns the error of an invoice whose status does not allow what.
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

// Closed reports whether the invoice is expired or canceled, or was before its refund: a payment that confirms then
// is late.
func (inv *Invoice) Closed() bool { // spec 2.7.5
	return inv.Status == Expired || inv.Status == Canceled || inv.Status == Refunded && inv.ClosedAs != ""
}

// Deadline returns when the invoice expires: PreSelectionExpiresAt as long as no option is selected.
func (inv *Invoice) Deadline() time.Time { // spec D2.2.3
	if inv.SelectedOptionID == "" {
		return inv.PreSelectionExpiresAt
	}

	return inv.ExpiresAt
}

// Schedule sets DueAt to when the invoice expires, or to zero when it does not expire by time.
func (inv *Invoice) Schedule() {
	inv.DueAt = time.Time{}
	if inv.Status == Open || inv.Status == Underpaid {
		inv.DueAt = inv.Deadline()
	}
}
