// Package pricecache keeps the prices of a rate.Source while they are fresh.
package pricecache

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// Cache keeps the fresh quotes of another source until they expire. If many callers ask for a pair at once,
// one of them asks the source; a caller whose context ends stops waiting. A pair that the source does not
// know is remembered as unknown. The requests of one account for pairs that never had a price are limited
// (see For). It is safe for concurrent use.
type Cache struct {
	source rate.Source
	now    func() time.Time
	// budgets are the budgets of accounts.
	budgets *limit.Buckets

	mu sync.Mutex
	// priced are the pairs that had a price, strange those that never had one. Callers can make up strange
	// pairs, so these never displace a price.
	priced, strange map[symbols]*pair
}

// symbols identifies a pair, in upper case.
type symbols struct{ base, currency string }

type pair struct {
	quote rate.Quote
	err   error
	// since and until bound the time for which the answer is kept.
	since, until time.Time
	waiting      chan struct{} // closed when the running refresh ends; nil if none runs
}

// fresh reports whether the answer still counts. An answer from the future does not: the clock was set back
// since, and until may be as far ahead.
func (p *pair) fresh(now time.Time) bool { return !now.Before(p.since) && now.Before(p.until) }

// failureFor is how long a failure is remembered, so that not every request asks a dead feed. unknownFor is
// how long a pair counts as unknown after the source reported so.
const (
	failureFor = time.Second
	unknownFor = 10 * time.Minute
)

// maxPairs bounds the memory that callers with made-up symbols can take.
const maxPairs = 10_000

// newPairs is how many requests per second an account may cause for pairs that never had a price, and
// newPairsBurst how many at once: an invoice in a new currency needs one pair per asset.
const (
	newPairs      = 2
	newPairsBurst = 60
)

// New returns a cache over source; now nil is time.Now.
func New(source rate.Source, now func() time.Time) *Cache {
	if now == nil {
		now = time.Now
	}

	return &Cache{
		source:  source,
		now:     now,
		budgets: limit.NewBuckets(now),
		priced:  map[symbols]*pair{},
		strange: map[symbols]*pair{},
	}
}

type accountKey struct{}

// For returns a context whose requests count for an account. Requests without one have no budget.
func For(ctx context.Context, accountID string) context.Context {
	return context.WithValue(ctx, accountKey{}, accountID)
}

// Quote implements rate.Source.
//
// Errors: those of the source; fault.Limited, code rate_limited, for a pair that never had a price, if the
// account of the context has asked for too many of them.
func (c *Cache) Quote(ctx context.Context, base, currency string) (rate.Quote, error) {
	base, currency = strings.ToUpper(base), strings.ToUpper(currency)
	key := symbols{base, currency}

	for {
		c.mu.Lock()

		p := c.pair(key)
		if p.fresh(c.now()) {
			quote, err := p.quote, p.err
			c.mu.Unlock()

			return quote, err
		}

		if p.waiting == nil {
			if err := c.spend(ctx, key, p); err != nil {
				c.mu.Unlock()

				return rate.Quote{}, err
			}

			p.waiting = make(chan struct{})
			c.mu.Unlock()

			return c.refresh(ctx, key, p)
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

// pair returns the pair of a key, or a new one. The caller holds c.mu.
func (c *Cache) pair(key symbols) *pair {
	if p := c.priced[key]; p != nil {
		return p
	}

	p := c.strange[key]
	if p == nil {
		makeRoom(c.strange, c.now())

		p = &pair{}
		c.strange[key] = p
	}

	return p
}

// makeRoom forgets answers if a map is full: first stale ones, and all if that is not enough.
func makeRoom(pairs map[symbols]*pair, now time.Time) {
	if len(pairs) < maxPairs {
		return
	}

	maps.DeleteFunc(pairs, func(_ symbols, p *pair) bool { return p.waiting == nil && !p.fresh(now) })

	if len(pairs) >= maxPairs {
		clear(pairs)
	}
}

// spend charges a request for a pair without a price to the budget of its account. Over the budget, it
// returns the error of the last request, if there was one. The caller holds c.mu.
func (c *Cache) spend(ctx context.Context, key symbols, p *pair) error {
	account, _ := ctx.Value(accountKey{}).(string)
	if c.priced[key] != nil || account == "" {
		return nil
	}

	ok, seconds, _ := c.budgets.Allow(ctx, account, newPairs, newPairsBurst)

	switch {
	case ok:
		return nil
	case p.err != nil:
		return p.err
	}

	limited := fault.New(
		fault.Limited, "rate_limited",
		"too many prices of new pairs were asked for, such as of %s in %s: send it again later",
		key.base, key.currency,
	)
	limited.RetryAfter = time.Duration(max(seconds, 1)) * time.Second

	return limited
}

func (c *Cache) refresh(ctx context.Context, key symbols, p *pair) (q rate.Quote, err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()

		close(p.waiting)
		p.waiting = nil

		if ctx.Err() != nil && err != nil {
			return // the caller gave up, which says nothing about the price
		}

		p.quote, p.err, p.since, p.until = q, err, c.now(), q.ExpiresAt

		switch {
		case err == nil:
			makeRoom(c.priced, p.since)
			delete(c.strange, key)
			c.priced[key] = p
		case errors.Is(err, fault.Invalid):
			p.until = p.since.Add(unknownFor)
		default:
			p.until = p.since.Add(failureFor)
		}
	}()

	q, err = c.source.Quote(ctx, key.base, key.currency)

	switch {
	case err == nil:
		return q, nil
	case errors.Is(err, fault.Invalid), errors.Is(err, fault.Unavailable):
		return rate.Quote{}, err
	}

	return rate.Quote{}, rate.Unavailable(key.base, key.currency, err)
}
