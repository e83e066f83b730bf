package invoice

import (
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// The bounds of an invoice's lifetime, and its defaults.
const (
	minLife             = 300 * time.Second // spec D2.1.7
	maxLife             = 604800 * time.Second
	defaultLife         = 86400 * time.Second
	defaultPreSelection = 7200 * time.Second // spec D2.1.8
)

// lifetimes returns how long a new invoice lives, and how long it waits for a selection.
func lifetimes(p CreateParams) (life, first time.Duration) {
	life, first = p.ExpiresIn, p.PreSelectionExpiresIn
	if life == 0 {
		life = defaultLife
	}

	if first == 0 {
		first = min(defaultPreSelection, life)
	}

	return life, first
}

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

// Deadline returns when the invoice expires: PreSelectionExpiresAt while no option is selected.
func (inv *Invoice) Deadline() time.Time { // spec D2.2.3
	if inv.SelectedOptionID == "" {
		return inv.PreSelectionExpiresAt
	}

	return inv.ExpiresAt
}

// Schedule sets DueAt to the time at which the invoice expires, or to zero when it does not expire by time.
func (inv *Invoice) Schedule() {
	inv.DueAt = time.Time{}
	if inv.Status == Open || inv.Status == Underpaid {
		inv.DueAt = inv.Deadline()
	}
}
