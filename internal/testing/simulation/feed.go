package simulation

import (
	"context"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// feedState is how the price feed answers.
type feedState int

const (
	feedWorks feedState = iota
	feedStale           // its prices have expired
	feedFails           // it does not answer
)

// feed is the source of prices.
type feed struct {
	clock *clock
	state feedState
	// since is when the state began.
	since time.Time
	// ethCents is the price of ETH in US cents; a euro is 1.10 dollars.
	ethCents int64
	// moved is when the price last changed.
	moved time.Time
}

// Quote returns the price of base in a currency.
func (f *feed) Quote(_ context.Context, base, currency string) (rate.Quote, error) {
	if f.state == feedFails {
		return rate.Quote{}, fault.New(
			fault.Unavailable,
			"price_unavailable",
			"the simulated feed does not answer",
		)
	}

	cents, known := map[string]int64{"ETH": f.ethCents, "USDC": 100, "BTC": 30 * f.ethCents}[strings.ToUpper(base)]
	if !known {
		return rate.Quote{}, rate.Unsupported(base, currency)
	}

	price := decimal.New(cents, -2)
	if currency == "EUR" {
		price = price.Div(decimal.New(11, -1)).RoundDown(8)
	}

	fetched := f.clock.now()
	if f.state == feedStale {
		fetched = fetched.Add(-time.Hour)
	}

	return rate.Quote{
		Base:      base,
		Currency:  currency,
		Rate:      price,
		FetchedAt: fetched,
		ExpiresAt: fetched.Add(time.Minute),
	}, nil
}

// set changes how the feed answers.
func (f *feed) set(state feedState) {
	if state != f.state {
		f.state, f.since = state, f.clock.now()
	}
}

// move changes the price of ETH.
func (f *feed) move(cents int64) {
	if cents != f.ethCents {
		f.ethCents, f.moved = cents, f.clock.now()
	}
}

// settled reports whether the feed has answered with one price for so long that no process has another one.
func (f *feed) settled() bool {
	const long = 10 * time.Minute

	now := f.clock.now()

	return f.state == feedWorks && now.Sub(f.since) > long && now.Sub(f.moved) > long
}

// works reports whether the feed has answered for longer than a failure is remembered.
func (f *feed) works() bool {
	return f.state == feedWorks && f.clock.now().Sub(f.since) > 5*time.Second
}
