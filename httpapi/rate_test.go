package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// What a host's own source answers is rounded, or is no price, before anybody sees it.
func TestRatesOfAHostsSourceAreRounded(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	prices := &movingRate{now: clock}

	s := bootWith(t, memory.New(), nil, clock, func(c *payments.Config) { c.Rates = prices })
	s.enter(t)

	for _, c := range []struct {
		answered string
		status   int
		shown    string
	}{
		{"2500.123456789", 200, `"rate":"2500.12345678"`},
		{"0", 503, "price_unavailable"},
		{"-2500", 503, "price_unavailable"},
		{"0.000000999", 503, "price_unavailable"},
	} {
		prices.price = decimal.RequireFromString(c.answered)
		now = now.Add(2 * time.Minute) // prices are cached

		r := s.do(t, request{method: "GET", path: "/v1/rates?base=SIM"})
		if r.status != c.status || !strings.Contains(string(r.body), c.shown) {
			t.Errorf("the source answers %s, the API %d %s, want %s", c.answered, r.status, r.body, c.shown)
		}
	}
}
