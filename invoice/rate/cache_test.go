package rate

import (
	"context"
	"testing"
	"time"

	"github.com/shopspring/decimal"
)

// clockSource answers quotes that are fresh for a minute by a clock that nobody sets back.
type clockSource struct{ at time.Time }

func (s clockSource) Quote(context.Context, string, string) (Quote, error) {
	return Quote{Rate: decimal.New(1, 0), FetchedAt: s.at, ExpiresAt: s.at.Add(time.Minute)}, nil
}

// A refusal under a clock that was ahead does not outlive the clock's return.
func TestRefusalUnderAWrongClockIsForgotten(t *testing.T) {
	right := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := right.Add(time.Hour)

	cache := NewCache(clockSource{at: right}, func() time.Time { return now })
	if _, err := cache.Quote(t.Context(), "ETH", "USD"); err == nil {
		t.Fatal("a quote that expired by this clock was taken")
	}

	now = right

	if _, err := cache.Quote(t.Context(), "ETH", "USD"); err != nil {
		t.Errorf("the clock is right again, and: %v", err)
	}
}
