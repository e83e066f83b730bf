package httpapi

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/engine"
)

// The document says how long this service keeps events.
func TestEventsSayHowLongTheyAreKept(t *testing.T) {
	kept := (&api{&engine.Engine{}}).events()[0].description
	if kept != "Events are kept for 30 days." {
		t.Errorf("by default the document says %q", kept)
	}

	for d, want := range map[time.Duration]string{
		24 * time.Hour:      "24 hours",
		36 * time.Hour:      "36 hours",
		7 * 24 * time.Hour:  "7 days",
		30 * 24 * time.Hour: "30 days",
	} {
		if got := daysOrHours(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
