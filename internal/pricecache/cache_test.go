package pricecache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/pricecache"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// clockSource answers quotes that are fresh for a minute from a time on, and refuses afterwards.
type clockSource struct {
	at  time.Time
	now func() time.Time
}

func (s clockSource) Quote(context.Context, string, string) (rate.Quote, error) {
	if !s.now().Before(s.at.Add(time.Minute)) {
		return rate.Quote{}, errors.New("the price has expired")
	}

	return rate.Quote{Rate: decimal.New(1, 0), FetchedAt: s.at, ExpiresAt: s.at.Add(time.Minute)}, nil
}

// A refusal under a clock that was ahead does not outlive the clock's return.
func TestRefusalUnderAWrongClockIsForgotten(t *testing.T) {
	right := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := right.Add(time.Hour)

	clock := func() time.Time { return now }

	cache := pricecache.New(clockSource{right, clock}, clock)
	if _, err := cache.Quote(t.Context(), "ETH", "USD"); err == nil {
		t.Fatal("a quote that expired by this clock was taken")
	}

	now = right

	if _, err := cache.Quote(t.Context(), "ETH", "USD"); err != nil {
		t.Errorf("the clock is right again, and: %v", err)
	}
}

// slow counts how often it is asked and answers when asked to.
type slow struct {
	asked atomic.Int64
	gate  chan struct{}
	err   error
}

func (s *slow) Quote(ctx context.Context, base, currency string) (rate.Quote, error) {
	s.asked.Add(1)

	select {
	case <-s.gate:
	case <-ctx.Done():
		return rate.Quote{}, ctx.Err()
	}

	now := time.Now()

	return rate.Quote{
		Base:      base,
		Currency:  currency,
		Rate:      decimal.NewFromInt(7),
		FetchedAt: now,
		ExpiresAt: now.Add(time.Minute),
	}, s.err
}

func TestCacheAsksOnceAndExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &slow{gate: make(chan struct{})}
		c := pricecache.New(src, nil)

		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if q, err := c.Quote(t.Context(), "ETH", "USD"); err != nil || q.Rate.String() != "7" {
					t.Errorf("Quote = %+v, %v", q, err)
				}
			})
		}

		synctest.Wait()
		close(src.gate)
		wg.Wait()

		if n := src.asked.Load(); n != 1 {
			t.Fatalf("50 callers asked the source %d times", n)
		}

		time.Sleep(time.Minute)

		if _, err := c.Quote(t.Context(), "ETH", "USD"); err != nil || src.asked.Load() != 2 {
			t.Fatalf("after expiry: asked %d times, %v", src.asked.Load(), err)
		}
	})
}

func TestCacheFailuresAndImpatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &slow{gate: make(chan struct{})}
		c := pricecache.New(src, nil)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		if _, err := c.Quote(ctx, "ETH", "USD"); !errors.Is(err, fault.Unavailable) {
			t.Fatalf("the caller gave up: %v", err)
		}

		close(src.gate)

		if _, err := c.Quote(t.Context(), "ETH", "USD"); err != nil {
			t.Fatalf("a caller who gave up spoilt the next one: %v", err)
		}

		time.Sleep(time.Minute)

		src.err = errors.New("403")
		for range 3 {
			if _, err := c.Quote(t.Context(), "ETH", "USD"); !errors.Is(err, fault.Unavailable) {
				t.Fatalf("dead feed: %v", err)
			}
		}

		if n := src.asked.Load(); n != 3 {
			t.Fatalf("a dead feed was asked %d times, want 3", n)
		}

		time.Sleep(time.Second)

		src.err = nil
		if _, err := c.Quote(t.Context(), "ETH", "USD"); err != nil {
			t.Fatalf("the feed came back: %v", err)
		}
	})
}
