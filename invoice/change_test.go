package invoice_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/invoice"
)

// What an event shows can be put by whoever reacts to it: it has the version that is stored.
func TestEventsShowTheStoredVersion(t *testing.T) {
	h := newHarness(t, account.Settings{})
	inv := h.sell()

	if _, err := h.svc.Cancel(t.Context(), h.owner, inv.ID); err != nil {
		t.Fatal(err)
	}

	stored, err := h.svc.Get(t.Context(), h.owner, inv.ID)
	if err != nil {
		t.Fatal(err)
	}

	last := h.events[len(h.events)-1]
	if shown := last.Payload.(invoice.Invoice); shown.Version != stored.Version {
		t.Errorf("%s shows version %d, stored is %d", last.Type, shown.Version, stored.Version)
	}
}
