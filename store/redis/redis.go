// Package redis shares a rate limiter and wake-ups between processes, in one Redis (5 or later, a
// cluster too).
//
// It stores no records; those are in a store.Store. While Redis is unavailable, each process limits
// requests on its own and finds work by polling, so payments continue. A host passes a Shared as
// payments.Config.Waker and as Limiter of httpapi and checkout.
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

// Options are the key prefix and the time limit. The zero value works.
type Options struct {
	// Prefix is the prefix of every key and of the wake-ups' channel. Services that share a Redis
	// need different ones. Defaults to "payments:".
	Prefix string

	// Timeout is how long a request waits for the limiter. After a failure, Allow fails at once for a second.
	// Defaults to 250 ms.
	Timeout time.Duration
}

// backOff is how long calls fail at once after a failure, so that requests do not queue.
const backOff = time.Second

// Shared is a store.Limiter and a store.Waker. It is safe for concurrent use.
type Shared struct {
	client  goredis.UniversalClient
	options Options
	close   func() error

	mu        sync.Mutex
	downUntil time.Time // calls fail with lastErr until then
	lastErr   error
}

var (
	_ store.Limiter = (*Shared)(nil)
	_ store.Waker   = (*Shared)(nil)
)

// New returns a Shared over a client that the host opens and closes. It sends nothing. Without
// ContextTimeoutEnabled in the client's options, the client's own time limits apply instead of
// Options.Timeout.
func New(client goredis.UniversalClient, o Options) *Shared {
	if o.Prefix == "" {
		o.Prefix = "payments:"
	}

	if o.Timeout == 0 {
		o.Timeout = 250 * time.Millisecond
	}

	return &Shared{client: client, options: o, close: func() error { return nil }}
}

// Open returns a Shared with its own client for a URL such as
// "redis://user:password@127.0.0.1:6379/0", or rediss:// for TLS. It does not connect. The client
// uses only commands of Redis 5. A malformed URL is fault.Invalid.
func Open(url string, o Options) (*Shared, error) {
	options, err := goredis.ParseURL(url)
	if err != nil { // not wrapped: it may contain the password
		return nil, fault.New(
			fault.Invalid, "redis_url_invalid",
			"the address of Redis cannot be read: give a URL such as redis://127.0.0.1:6379/0",
		)
	}

	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	options.ContextTimeoutEnabled = true
	options.DialerRetries = 1 // callers retry or continue without

	client := goredis.NewClient(options)
	s := New(client, o)
	s.close = client.Close

	return s, nil
}

// Close closes the client of Open; a client passed to New stays open.
func (s *Shared) Close() error { return s.close() }

// call sends a command within Options.Timeout. For backOff after a failure it returns that failure at once.
func (s *Shared) call(ctx context.Context, doing string, send func(ctx context.Context) error) error {
	s.mu.Lock()
	down, lastErr := time.Now().Before(s.downUntil), s.lastErr
	s.mu.Unlock()

	if down {
		return lastErr
	}

	limited, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()

	err := send(limited)
	if err == nil {
		return nil
	}

	if ctx.Err() != nil { // canceled by the caller, not a failure of Redis
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}

	err = wrapError(err, doing)

	s.mu.Lock()
	defer s.mu.Unlock()

	s.downUntil, s.lastErr = time.Now().Add(backOff), err

	return err
}

// wrapError returns fault.Unavailable with code redis_refused for an error reply of Redis, else redis_down.
func wrapError(err error, doing string) error {
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
