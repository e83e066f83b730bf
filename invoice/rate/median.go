package rate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
)

// MedianConfig configures the median of several sources.
type MedianConfig struct {
	// Sources are asked at the same time.
	Sources []Source
	// Agree is how many prices must be left after outliers are dropped. Defaults to more than half of
	// Sources.
	Agree int
	// SpreadBPS is the largest distance of a price from the median, in ten-thousandths of the median; prices
	// further away are dropped. Defaults to 300.
	SpreadBPS int
	// MaxAge is the largest age of a price since it was fetched; older ones are refused. Defaults to 5
	// minutes.
	MaxAge time.Duration
	// Now defaults to time.Now.
	Now func() time.Time
}

// A source that takes longer than sourceLimit counts as gone: the engine gives all of them together 10
// seconds. It is not asked again for sourcePause.
const (
	sourceLimit = 5 * time.Second
	sourcePause = 30 * time.Second
)

type median struct {
	MedianConfig
	calls []*hostcall.Limited[[2]string, Quote] // of each source, by base and currency
}

// Median returns a source that asks several sources and answers with the median of those that agree. One feed
// that lies, lags, hangs (5 seconds) or is gone decides nothing. Of an even number the lower of the middle
// two is taken, which credits a payer no more than either of them would. A quote is fresh as long as the
// oldest price in it.
func Median(c MedianConfig) (Source, error) {
	if len(c.Sources) == 0 {
		return nil, fault.New(fault.Invalid, "config_invalid", "rate.Median has no sources")
	}

	if c.Agree == 0 {
		c.Agree = len(c.Sources)/2 + 1
	}

	if c.Agree > len(c.Sources) {
		return nil, fault.New(
			fault.Invalid, "config_invalid", "rate.Median wants %d of %d sources to agree",
			c.Agree, len(c.Sources),
		)
	}

	if c.SpreadBPS == 0 {
		c.SpreadBPS = 300
	}

	if c.MaxAge == 0 {
		c.MaxAge = 5 * time.Minute
	}

	if c.Now == nil {
		c.Now = time.Now
	}

	m := median{MedianConfig: c}
	for range c.Sources {
		m.calls = append(m.calls, &hostcall.Limited[[2]string, Quote]{
			Name:  "a source of prices",
			Limit: sourceLimit,
			Pause: sourcePause,
			Log:   slog.Default(),
		})
	}

	return m, nil
}

// Quote implements Source.
func (m median) Quote(ctx context.Context, base, currency string) (Quote, error) {
	base, currency = normal(base, currency)

	quotes, failures := m.ask(ctx, base, currency)
	if len(quotes) == 0 && len(failures) > 0 &&
		!slices.ContainsFunc(failures, func(err error) bool { return !errors.Is(err, fault.Invalid) }) {
		return Quote{}, Unsupported(base, currency) // no source has the pair
	}

	agreeing := m.agreeing(quotes)
	if len(agreeing) < m.Agree {
		failures = append(
			failures,
			fmt.Errorf(
				"%d of %d sources agree within %d basis points, %d have to",
				len(agreeing), len(m.Sources), m.SpreadBPS, m.Agree,
			),
		)

		return Quote{}, Unavailable(base, currency, errors.Join(failures...))
	}

	out := middle(agreeing)
	for _, q := range agreeing {
		if q.FetchedAt.Before(out.FetchedAt) {
			out.FetchedAt = q.FetchedAt
		}

		if q.ExpiresAt.Before(out.ExpiresAt) {
			out.ExpiresAt = q.ExpiresAt
		}
	}

	return out, nil
}

// ask asks every source and returns the fresh quotes.
func (m median) ask(ctx context.Context, base, currency string) (quotes []Quote, failures []error) {
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)

	for i, s := range m.Sources {
		wg.Go(func() {
			q, err := m.calls[i].Do(ctx, [2]string{base, currency}, func(ctx context.Context) (Quote, error) {
				return s.Quote(ctx, base, currency)
			})

			now := m.Now()
			if err == nil && (now.Sub(q.FetchedAt) > m.MaxAge || !now.Before(q.ExpiresAt)) {
				err = fmt.Errorf("a price of %s is stale", q.FetchedAt.UTC().Format(time.RFC3339))
			}

			if err == nil && q.Rate.Sign() <= 0 {
				err = errors.New("a price that is not above 0")
			}

			mu.Lock()
			defer mu.Unlock()

			if err != nil {
				failures = append(failures, err)
				return
			}

			quotes = append(quotes, q)
		})
	}

	wg.Wait()

	return quotes, failures
}

// agreeing drops the prices that are too far from the median of all.
func (m median) agreeing(quotes []Quote) []Quote {
	if len(quotes) == 0 {
		return nil
	}

	at := middle(quotes).Rate
	most := at.Mul(decimal.New(int64(m.SpreadBPS), -4))

	return slices.DeleteFunc(
		slices.Clone(quotes), func(q Quote) bool { return q.Rate.Sub(at).Abs().Cmp(most) > 0 },
	)
}

// middle returns the median quote: of two middle ones, the lower. quotes must not be empty.
func middle(quotes []Quote) Quote {
	sorted := slices.SortedFunc(slices.Values(quotes), func(a, b Quote) int { return a.Rate.Cmp(b.Rate) })
	return sorted[(len(sorted)-1)/2]
}
