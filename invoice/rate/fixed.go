package rate

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
)

// Fixed is a source of prices that the host sets: for tests, demos, and coins of test networks. It is safe
// for concurrent use.
type Fixed struct {
	now   func() time.Time
	fresh time.Duration

	mu     sync.RWMutex
	prices map[string]decimal.Decimal
}

// NewFixed returns a source with prices by "BASE/CURRENCY", such as "ETH/USD": "2500". A quote is fresh for
// the given time from the call of Quote; now nil is time.Now.
func NewFixed(prices map[string]string, fresh time.Duration, now func() time.Time) (*Fixed, error) {
	if now == nil {
		now = time.Now
	}

	f := &Fixed{now: now, fresh: fresh, prices: map[string]decimal.Decimal{}}
	for pair, price := range prices {
		if err := f.Set(pair, price); err != nil {
			return nil, err
		}
	}

	return f, nil
}

// Set changes the price of a pair; "" removes it, so that the pair has no fresh price any more.
//
// Errors: fault.Invalid (price_invalid) for a pair that is not "BASE/CURRENCY", and for a price that cannot
// be used.
func (f *Fixed) Set(pair, price string) error {
	base, currency, ok := strings.Cut(pair, "/")
	if !ok || base == "" || currency == "" || strings.Contains(currency, "/") {
		return fault.New(
			fault.Invalid, "price_invalid", "the fixed price of %q names no pair, such as \"ETH/USD\"", pair,
		)
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	next := maps.Clone(f.prices)
	if price == "" {
		next[pair] = decimal.Decimal{}
	} else {
		d, err := decimal.NewFromString(price)
		if err != nil {
			return fmt.Errorf("the fixed price of %s: %w", pair, err)
		}

		d, ok := round(d)
		if !ok {
			return fault.New(
				fault.Invalid, "price_invalid",
				"the fixed price of %s, %s, has fewer than 3 significant digits at 8 places",
				pair, price,
			)
		}

		next[pair] = d
	}

	f.prices = next

	return nil
}

// Quote implements Source.
func (f *Fixed) Quote(_ context.Context, base, currency string) (Quote, error) {
	base, currency = normal(base, currency)

	f.mu.RLock()
	price, known := f.prices[base+"/"+currency]
	f.mu.RUnlock()

	if !known {
		return Quote{}, Unsupported(base, currency)
	}

	if price.IsZero() {
		return Quote{}, Unavailable(base, currency, nil)
	}

	now := f.now()

	return Quote{
		Base:      base,
		Currency:  currency,
		Rate:      price,
		FetchedAt: now,
		ExpiresAt: now.Add(f.fresh),
	}, nil
}
