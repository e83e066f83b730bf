package limit_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/store"
)

var _ store.Limiter = (*limit.Buckets)(nil)

func TestLimiterOfOneProcess(t *testing.T) {
	conformance.TestLimiter(t, func(*testing.T) conformance.LimiterHarness {
		now := time.Unix(1e9, 0)
		clock := func() time.Time { return now }

		return conformance.LimiterHarness{
			Limiter: limit.NewBuckets(clock),
			Now:     clock,
			Wait:    func(d time.Duration) { now = now.Add(d) },
		}
	})
}
