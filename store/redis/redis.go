// Package redis lets many processes share what need not survive: a rate limiter and wake-ups, in
// one Redis (5 or later, a cluster too).
//
// Records are never kept in it. When Redis is away, requests are limited by each process for itself
// and work is found by polling: payments go on.
package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

// Options say how Redis is used. The zero value works.
type Options struct {
	// Prefix begins every key and the channel of wake-ups: services that share a Redis need
	// different ones. Defaults to "payments:".
	Prefix string
	// Timeout is how long a request waits for the limiter. After that, Redis counts as away for a
	// second, in which Allow fails at once. Defaults to 250 ms.
	Timeout time.Duration
}

// away is how long Redis is left alone after it did not answer, so that requests do not queue up to
// wait for it.
const away = time.Second

// Shared is the limiter and the wake-ups. It is safe for concurrent use.
type Shared struct {
	client  goredis.UniversalClient
	options Options
	close   func() error

	mu       sync.Mutex
	until    time.Time // Redis is left alone until then
	lastCall error
}

var (
	_ store.Limiter = (*Shared)(nil)
	_ store.Waker   = (*Shared)(nil)
)

// New returns a Shared over a client that the host opened and closes. It does not ask Redis
// anything. The client should be made with ContextTimeoutEnabled, or Options.Timeout holds only as
// far as the client's own time limits are shorter.
func New(client goredis.UniversalClient, o Options) *Shared {
	if o.Prefix == "" {
		o.Prefix = "payments:"
	}

	if o.Timeout == 0 {
		o.Timeout = 250 * time.Millisecond
	}

	return &Shared{client: client, options: o, close: func() error { return nil }}
}

// Open returns a Shared over a client of its own for a URL such as
// "redis://user:password@127.0.0.1:6379/0" (rediss:// for TLS). It does not connect yet. The client
// sends no command that a Redis of version 5 does not know.
func Open(url string, o Options) (*Shared, error) {
	options, err := goredis.ParseURL(url)
	if err != nil { // which may hold the password, so that it goes no further
		return nil, fault.New(
			fault.Invalid, "redis_url_invalid",
			"the address of Redis cannot be read: give a URL such as redis://127.0.0.1:6379/0",
		)
	}

	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	options.ContextTimeoutEnabled = true
	options.DialerRetries = 1 // who asks tries again, or goes on without
	client := goredis.NewClient(options)
	s := New(client, o)
	s.close = client.Close

	return s, nil
}

// Close closes the client that Open made, and nothing that was handed to New.
func (s *Shared) Close() error { return s.close() }

// call asks Redis something within the time limit.
func (s *Shared) call(ctx context.Context, doing string, ask func(ctx context.Context) error) error {
	s.mu.Lock()
	alone, last := time.Now().Before(s.until), s.lastCall
	s.mu.Unlock()

	if alone {
		return last
	}

	limited, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()

	err := ask(limited)
	if err == nil {
		return nil
	}

	if ctx.Err() != nil { // the caller gave up: that says nothing about Redis
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}

	err = explain(err, doing)

	s.mu.Lock()
	defer s.mu.Unlock()

	s.until, s.lastCall = time.Now().Add(away), err

	return err
}

// explain gives an error of Redis its word.
func explain(err error, doing string) error {
	if answer, ok := errors.AsType[goredis.Error](err); ok {
		return fault.Wrap(
			answer, fault.Unavailable, "redis_refused",
			"%s: Redis refuses the command; check its rights, memory and version (5 or later)",
			doing,
		)
	}

	return fault.Wrap(
		err, fault.Unavailable, "redis_down",
		"%s: Redis cannot be reached or does not answer in time; try again",
		doing,
	)
}
