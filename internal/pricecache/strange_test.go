package pricecache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/pricecache"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// feed prices ETH in USD, has no price of ETH in DOWN, knows nothing else, and counts its questions.
type feed struct {
	now   func() time.Time
	asked int
}

func (f *feed) Quote(_ context.Context, base, currency string) (rate.Quote, error) {
	f.asked++

	switch {
	case base != "ETH":
		return rate.Quote{}, rate.Unsupported(base, currency)
	case currency == "USD" || currency == "EUR":
		now := f.now()

		return rate.Quote{Rate: decimal.New(1, 0), FetchedAt: now, ExpiresAt: now.Add(time.Minute)}, nil
	case currency == "DOWN":
		return rate.Quote{}, rate.Unavailable(base, currency, nil)
	}

	return rate.Quote{}, rate.Unsupported(base, currency)
}

func newFeed() (f *feed, cache *pricecache.Cache, pass func(time.Duration)) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f = &feed{now: func() time.Time { return now }}

	return f, pricecache.New(f, f.now), func(d time.Duration) { now = now.Add(d) }
}

// A pair that the source does not know is not asked for again within ten minutes; one that fails is, after a second.
func TestUnknownPairsAreRememberedAsUnknown(t *testing.T) {
	f, cache, pass := newFeed()

	for range 50 {
		if _, err := cache.Quote(t.Context(), "eth", "zzz"); !errors.Is(err, fault.Invalid) {
			t.Fatal(err)
		}

		pass(10 * time.Second)
	}

	if f.asked != 1 {
		t.Errorf("the unknown pair was asked for %d times", f.asked)
	}

	pass(10 * time.Minute)

	if _, _ = cache.Quote(t.Context(), "ETH", "ZZZ"); f.asked != 2 {
		t.Errorf("after its time it was asked for %d times", f.asked)
	}

	f.asked = 0

	for range 5 {
		if _, err := cache.Quote(t.Context(), "ETH", "DOWN"); !errors.Is(err, fault.Unavailable) {
			t.Fatal(err)
		}

		pass(2 * time.Second)
	}

	if f.asked != 5 {
		t.Errorf("the pair that fails was asked for %d times", f.asked)
	}
}

// An account that invents currencies asks the feeds for so many and no more, and takes nothing from others: not their
// budget, and not a price that is kept.
func TestInventedPairsHaveABudgetPerAccount(t *testing.T) {
	f, cache, pass := newFeed()
	honest, other := pricecache.For(t.Context(), "honest"), pricecache.For(t.Context(), "other")

	if _, err := cache.Quote(honest, "ETH", "USD"); err != nil {
		t.Fatal(err)
	}

	f.asked = 0

	var refused int

	for i := range 30_000 {
		_, err := cache.Quote(other, "ETH", fmt.Sprintf("X%d", i))

		switch {
		case errors.Is(err, fault.Limited) && fault.Code(err) == "rate_limited" && fault.RetryAfter(err) > 0:
			refused++
		case !errors.Is(err, fault.Invalid):
			t.Fatal(err)
		}
	}

	if f.asked != 60 || refused != 30_000-60 {
		t.Errorf("the feed was asked %d times, %d were refused", f.asked, refused)
	}

	if _, err := cache.Quote(honest, "ETH", "USD"); err != nil || f.asked != 60 {
		t.Errorf("the price is not kept: %v", err)
	}

	if _, err := cache.Quote(honest, "ETH", "EUR"); err != nil {
		t.Errorf("another account's new currency: %v", err)
	}

	pass(2 * time.Minute) // both prices expired

	for range 100 {
		if _, err := cache.Quote(other, "ETH", "USD"); err != nil {
			t.Fatalf("a pair that has a price needs no budget: %v", err)
		}

		pass(time.Minute)
	}
}

// Over the budget, a pair that failed answers what it answered.
func TestPairThatFailsStaysUnavailableOverTheBudget(t *testing.T) {
	_, cache, pass := newFeed()
	one := pricecache.For(t.Context(), "one")

	if _, err := cache.Quote(one, "ETH", "DOWN"); !errors.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}

	pass(time.Second)

	for i := range 100 {
		_, _ = cache.Quote(one, "ETH", fmt.Sprintf("X%d", i))
	}

	if _, err := cache.Quote(one, "ETH", "DOWN"); !errors.Is(err, fault.Unavailable) {
		t.Errorf("over the budget: %v", err)
	}
}
