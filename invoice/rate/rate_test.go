package rate_test

import (
	"context"
	"errors"
	"testing"
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

// source answers one quote for every pair.
type source struct{ quote rate.Quote }

func (s source) Quote(context.Context, string, string) (rate.Quote, error) { return s.quote, nil }

func TestFreshIsRoundedOrRefused(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	for _, c := range []struct {
		rate  string
		until time.Duration
		want  string // "" for none
	}{
		{"2500.123456789", time.Minute, "2500.12345678"},
		{"0.000001009", time.Minute, "0.000001"},
		{"1", 1, "1"},
		{"1", 0, ""},
		{"1", -time.Minute, ""},
		{"0", time.Minute, ""},
		{"-2500", time.Minute, ""},
		{"0.000000999", time.Minute, ""},
	} {
		from := source{rate.Quote{Rate: decimal.RequireFromString(c.rate), ExpiresAt: now.Add(c.until)}}

		q, err := rate.Fresh(t.Context(), from, "ETH", "USD", func() time.Time { return now })
		if c.want == "" && (!errors.Is(err, fault.Unavailable) || fault.Code(err) != "price_unavailable") {
			t.Errorf("%s for %s: %+v, error %v, want price_unavailable", c.rate, c.until, q, err)
		}

		if c.want != "" && (err != nil || q.Rate.String() != c.want) {
			t.Errorf("%s for %s: %+v, error %v, want %s", c.rate, c.until, q, err, c.want)
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
