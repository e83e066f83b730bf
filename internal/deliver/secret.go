package deliver

import (
	"time"

	"github.com/seed-8ee7f392/payments/webhook"
)

// Pruned returns the endpoint without its previous secret once the overlap is over.
func Pruned(e webhook.Endpoint, at time.Time) webhook.Endpoint {
	if len(e.SealedPrevious) > 0 && !at.Before(e.PreviousSecretExpiresAt) {
		e.SealedPrevious, e.PreviousSecretExpiresAt = nil, time.Time{}
	}

	return e
}
