package event_test

import (
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/event"
)

func TestTypesAreDottedUniqueAndPublic(t *testing.T) {
	seen := map[event.Type]bool{}
	for _, typ := range event.Types() {
		if seen[typ] || typ.Internal() || strings.Count(string(typ), ".") != 1 {
			t.Errorf("%q is twice in the list, internal, or not of the form object.what", typ)
		}

		seen[typ] = true
	}
}

func TestRequestTravelsInContext(t *testing.T) {
	want := event.Request{ID: "req_1", IdempotencyKey: "k"}
	if got := event.RequestOf(event.WithRequest(t.Context(), want)); got != want {
		t.Fatalf("RequestOf = %+v", got)
	}

	if got := event.RequestOf(t.Context()); got != (event.Request{}) {
		t.Fatalf("RequestOf without a request = %+v", got)
	}
}
