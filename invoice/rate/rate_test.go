package rate_test

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
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

func TestRound(t *testing.T) {
	for in, want := range map[string]string{
		"2500.123456789": "2500.12345678",
		"0.00000100":     "0.000001",
		"0.000123456":    "0.00012345",
	} {
		if got, ok := rate.Round(decimal.RequireFromString(in)); !ok || got.String() != want {
			t.Errorf("Round(%s) = %s, %v; want %s", in, got, ok, want)
		}
	}

	for _, in := range []string{"0", "-1", "0.00000099", "0.000000001"} {
		if got, ok := rate.Round(decimal.RequireFromString(in)); ok {
			t.Errorf("Round(%s) = %s, true; want no price", in, got)
		}
	}
}

func TestFixed(t *testing.T) {
	f, err := rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}

	q, err := f.Quote(t.Context(), "eth", "usd")
	if err != nil || q.Rate.String() != "2500" || q.ExpiresAt.Sub(q.FetchedAt) != time.Minute {
		t.Fatalf("Quote = %+v, %v", q, err)
	}

	if _, err := f.Quote(t.Context(), "ETH", "XYZ"); !errors.Is(err, fault.Invalid) {
		t.Fatalf("unknown pair: %v", err)
	}

	if err := f.Set("ETH/USD", ""); err != nil {
		t.Fatal(err)
	}

	if _, err := f.Quote(
		t.Context(), "ETH", "USD",
	); !errors.Is(err, fault.Unavailable) ||
		fault.Code(err) != "price_unavailable" {
		t.Fatalf("taken away: %v", err)
	}

	if _, err := rate.NewFixed(
		map[string]string{"X/USD": "0.00000001"}, time.Minute, nil,
	); !errors.Is(
		err, fault.Invalid,
	) {
		t.Fatalf("too small a price: %v", err)
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
		c := rate.NewCache(src, nil)

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
		c := rate.NewCache(src, nil)

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
