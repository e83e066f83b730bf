package httpapi

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

const (
	// spec 8.1
	requestsPerSecond = 100 // of one key, by default
	requestBurst      = 300 // requests
)

// limit takes one token of the key's bucket, or returns fault.Limited with the seconds to wait. When the
// shared limiter fails, this process limits on its own.
func (s *server) limit(ctx context.Context, c *call) error { // spec 7.4
	perSecond, burst := c.settings.RequestsPerSecond, c.settings.RequestBurst
	if perSecond == 0 {
		perSecond = requestsPerSecond
	}

	if burst == 0 {
		burst = max(requestBurst, perSecond)
	}

	limiter := store.Limiter(s.local)
	if s.options.Limiter != nil {
		limiter = s.options.Limiter
	}

	ok, waitSeconds, err := limiter.Allow(ctx, "key/"+c.key.ID, perSecond, burst)
	if err != nil {
		s.log.WarnContext(
			ctx, "shared rate limiter failed, limiting in this process",
			"request_id", c.requestID, "error", err,
		)

		ok, waitSeconds, err = s.local.Allow(ctx, "key/"+c.key.ID, perSecond, burst)
	}

	if err != nil || ok {
		return err
	}

	limited := fault.New(
		fault.Limited, "rate_limited",
		"the API key %s made more than %d requests per second: wait, longer after each refusal",
		c.key.ID, perSecond,
	)
	limited.RetryAfter = time.Duration(max(waitSeconds, 1)) * time.Second

	return limited
}
