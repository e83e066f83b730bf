package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

const (
	// spec 8.1
	requestsPerSecond = 100 // of one key, by default
	requestBurst      = 300 // requests
)

// authorize checks the API key, its rate limit and its permissions, and sets c.key, c.owner and c.settings.
// The errors are fault.Unauthenticated, fault.Limited and fault.Forbidden, or the store's.
func (s *server) authorize(ctx context.Context, w http.ResponseWriter, r *http.Request, c *call) error {
	if c.op.access == noKey {
		return nil
	}

	secret, err := bearer(r.Header)
	if err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return err
	}

	key, acct, err := s.authenticate(ctx, secret, c.client)
	if err != nil {
		if errors.Is(err, fault.Unauthenticated) {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}

		return err
	}

	c.key, c.owner, c.settings = key, key.Owner, acct.Settings // spec 5.4

	if err := s.limit(ctx, c); err != nil {
		return err
	}

	return c.checkPermission()
}

// checkPermission returns fault.Forbidden when the key may not use the operation.
func (c *call) checkPermission() error {
	switch {
	case c.key.Publishable && c.op.access != anyKey: // spec 5.3
		return fault.New(
			fault.Forbidden,
			"publishable_key_not_allowed",
			"a publishable key only reads networks, assets and rates: use a secret key, and only on your server",
		)
	case c.op.scope != "" && !c.key.Publishable && !c.key.Allows(c.op.scope):
		return fault.New(
			fault.Forbidden, "scope_missing",
			"the API key %s does not have the scope %s: create one that has it",
			c.key.ID, c.op.scope,
		)
	case c.op.testOnly && c.owner.Livemode:
		// spec 4.5.1
		return fault.New(fault.Forbidden, "test_mode_only", "this works on test data only: use a test key")
	}

	return nil
}

// bearer returns the API key of the Authorization header (RFC 6750 section 2.1).
func bearer(h http.Header) (string, error) { // spec 5.1
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", fault.New(
			fault.Unauthenticated, "api_key_required",
			"send your API key once, as Authorization: Bearer <key>",
		)
	}

	scheme, secret, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", fault.New(
			fault.Unauthenticated, "api_key_required",
			"send your API key as Authorization: Bearer <key>",
		)
	}

	return secret, nil
}

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
