package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/seed-8ee7f392/payments/fault"
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
