package event_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
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
	for _, ev := range eventctx.About(of, event.PaymentOrphaned, event.PaymentLost, event.PaymentDropped) {
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

func TestTypesAreDottedUniqueAndPublic(t *testing.T) {
	seen := map[event.Type]bool{}
	for _, typ := range event.Types() {
		if seen[typ] || typ.Internal() || strings.Count(string(typ), ".") != 1 {
			t.Errorf("%q is twice in the list, internal, or not of the form object.what", typ)
		}

		seen[typ] = true
	}

	if seen[event.Ping] || event.Ping.Internal() || !event.SettingsChanged.Internal() {
		t.Error("ping can be subscribed to or is internal, or settings is not internal")
	}
}

func TestRequestTravelsInContext(t *testing.T) {
	want := event.Request{ID: "req_1", IdempotencyKey: "k"}
	if got := eventctx.RequestOf(eventctx.WithRequest(t.Context(), want)); got != want {
		t.Fatalf("RequestOf = %+v", got)
	}

	if got := eventctx.RequestOf(t.Context()); got != (event.Request{}) {
		t.Fatalf("RequestOf without a request = %+v", got)
	}
}
