package event_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/event"
)

type record struct{ event.Object }

func (r record) EventObject() event.Object { return r.Object }

// The last published event has the record's number, and an internal one has none of its own.
func TestAboutNumbersWhatIsPublished(t *testing.T) {
	of := record{event.Object{ID: "pay_1", PaymentID: "pay_1", InvoiceID: "inv_1", Sequence: 5}}

	type numbered struct {
		Type     event.Type
		Sequence int64
	}

	var got []numbered
	for _, ev := range event.About(of, event.PaymentOrphaned, event.PaymentLost, event.PaymentDropped) {
		got = append(got, numbered{ev.Type, ev.Sequence})

		if ev.ObjectID != "pay_1" || ev.PaymentID != "pay_1" || ev.InvoiceID != "inv_1" || ev.Payload != of {
			t.Errorf("%s names another record: %+v", ev.Type, ev)
		}
	}

	want := []numbered{{event.PaymentOrphaned, 4}, {event.PaymentLost, 4}, {event.PaymentDropped, 5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Types of specification part 6 have a dot, those between domains have none.
func TestTypesArePublic(t *testing.T) {
	types := event.Types()
	if slices.Contains(types, event.Ping) {
		t.Error("an endpoint may subscribe to ping, which is sent whatever the subscription")
	}

	for _, typ := range types {
		if typ.Internal() || !strings.Contains(string(typ), ".") {
			t.Errorf("%s is listed for subscriptions", typ)
		}
	}

	if !event.SettingsChanged.Internal() || event.Ping.Internal() {
		t.Error("what is internal is not")
	}
}
