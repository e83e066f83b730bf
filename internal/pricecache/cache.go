// Package pricecache keeps the prices that a rate.Source answers while they are fresh.
package pricecache

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// Cache keeps quotes of another source, which answers fresh ones, until they expire. However many callers ask for
// a pair at once, one of them asks the source; a caller whose context ends stops waiting. It is safe for
// concurrent use.
type Cache struct {
	source rate.Source
	now    func() time.Time

	mu    sync.Mutex
	pairs map[symbols]*pair
}

// symbols names a pair, in upper case.
type symbols struct{ base, currency string }

type pair struct {
	quote rate.Quote
	err   error
	// since and until bound the time for which the answer is kept.
	since, until time.Time
	waiting      chan struct{} // closed when the refresh under way has ended; nil when there is none
}

// fresh reports whether the answer still counts. One from a time that is yet to come does not: the clock was set
// back since, and until may be as far ahead.
func (p *pair) fresh(now time.Time) bool { return !now.Before(p.since) && now.Before(p.until) }

// failureFor is how long a failure is remembered, so that a dead feed is not asked by every request.
const failureFor = time.Second

// maxPairs bounds the memory that callers with made-up symbols can take.
const maxPairs = 10_000

// New returns a cache over source; now nil is time.Now.
func New(source rate.Source, now func() time.Time) *Cache {
	if now == nil {
		now = time.Now
	}

	return &Cache{source: source, now: now, pairs: map[symbols]*pair{}}
}

// Quote implements rate.Source.
func (c *Cache) Quote(ctx context.Context, base, currency string) (rate.Quote, error) {
	base, currency = strings.ToUpper(base), strings.ToUpper(currency)
	key := symbols{base, currency}

	for {
		c.mu.Lock()

		p := c.pairs[key]
		if p == nil {
			if len(c.pairs) >= maxPairs {
				clear(c.pairs)
			}

			p = &pair{}
			c.pairs[key] = p
		}

		if p.fresh(c.now()) {
			quote, err := p.quote, p.err
			c.mu.Unlock()

			return quote, err
		}

		if p.waiting == nil {
			p.waiting = make(chan struct{})
			c.mu.Unlock()

			return c.refresh(ctx, p, base, currency)
		}

		wait := p.waiting
		c.mu.Unlock()

		select {
		case <-wait:
		case <-ctx.Done():
			return rate.Quote{}, rate.Unavailable(base, currency, ctx.Err())
		}
	}
}

func (c *Cache) refresh(ctx context.Context, p *pair, base, currency string) (q rate.Quote, err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()

		close(p.waiting)
		p.waiting = nil

		if ctx.Err() != nil && err != nil {
			return // the caller gave up: that says nothing about the price
		}

		p.quote, p.err, p.since, p.until = q, err, c.now(), q.ExpiresAt
		if err != nil {
			p.until = p.since.Add(failureFor)
		}
	}()

	q, err = c.source.Quote(ctx, base, currency)

	switch {
	case err == nil:
		return q, nil
	case errors.Is(err, fault.Invalid), errors.Is(err, fault.Unavailable):
		return rate.Quote{}, err
	}

	return rate.Quote{}, rate.Unavailable(base, currency, err)
}
