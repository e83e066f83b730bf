package conformance

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/conformance/internal/limitertest"
	"github.com/seed-8ee7f392/payments/store"
)

// LimiterHarness is a rate limiter with its clock.
type LimiterHarness struct {
	Limiter store.Limiter

	// Now is the limiter's clock.
	Now func() time.Time

	// Wait returns when the clock has advanced by at least d. A fake clock is set; with a real one it waits.
	Wait func(d time.Duration)
}

// TestLimiter tests a rate limiter against store.Limiter:
//
//   - A bucket is full at first, refills at its rate, and holds no more than a burst.
//   - A refusal takes no token, and waiting for the time that it returns is enough.
//   - Keys have buckets of their own. A smaller burst counts at once.
//   - Concurrent calls take no token twice.
//
// The number of allowed calls is compared with the number that the elapsed time allows, so that a slow
// machine does not fail. Each call of the factory returns a limiter without buckets.
func TestLimiter(t *testing.T, factory func(t *testing.T) LimiterHarness) {
	limitertest.Run(t, func(t *testing.T) limitertest.Harness { return limitertest.Harness(factory(t)) })
}
