package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// Payments confirm without a price. ratesLimit is how long a follower waits for one. After a source took
// longer, it is not asked for ratesPause.
const (
	ratesLimit = 10 * time.Second
	ratesPause = 30 * time.Second
)

// paceRates is how often the prices of the enabled assets are checked.
const paceRates = 30 * time.Second

// limitedRates asks the source of prices within ratesLimit, and rounds its answers.
type limitedRates struct {
	rate.Source
	now   func() time.Time
	calls *hostcall.Limited[[2]string, rate.Quote] // by base and currency
}

func newLimitedRates(c Config) limitedRates {
	return limitedRates{
		Source: c.Rates,
		now:    c.Now,
		calls: &hostcall.Limited[[2]string, rate.Quote]{
			Name:  "the source of prices",
			Limit: ratesLimit,
			Pause: ratesPause,
			Log:   c.Log,
		},
	}
}

// Quote asks the source.
func (l limitedRates) Quote(ctx context.Context, base, currency string) (rate.Quote, error) {
	return l.calls.Do(ctx, [2]string{base, currency}, func(ctx context.Context) (rate.Quote, error) {
		return rate.Fresh(ctx, l.Source, base, currency, l.now)
	})
}

// checkRates asks for the prices in USD of all enabled assets, so that Health shows the state of the source
// whether or not requests need prices. An asset that the source does not know, such as a coin of a test
// network, is skipped.
func (e *Engine) checkRates(ctx context.Context) error {
	var symbols []string
	for _, a := range append(e.Networks.Assets(true), e.Networks.Assets(false)...) {
		symbols = append(symbols, chaindata.PriceSymbol(a))
	}

	symbols = slices.Compact(slices.Sorted(slices.Values(symbols)))
	failed := make([]error, len(symbols))

	var wg sync.WaitGroup
	for i, symbol := range symbols {
		wg.Go(func() {
			_, err := e.Rates.Quote(ctx, symbol, "USD")
			if err != nil && !errors.Is(err, fault.Invalid) && !errors.Is(err, fault.NotFound) {
				failed[i] = fmt.Errorf("%s: %w", symbol, err)
			}
		})
	}

	wg.Wait()

	return errors.Join(failed...)
}
