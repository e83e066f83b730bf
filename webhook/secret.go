package webhook

import (
	"fmt"
	"time"
)

// rotated returns the endpoint with sealed as its signing secret. The previous secret goes on
// signing for overlap; an older one is dropped.
func (e Endpoint) rotated(sealed []byte, last4 string, overlap time.Duration, at time.Time) Endpoint {
	// spec 2.10.3, D8.9
	e.SealedPrevious, e.PreviousSecretExpiresAt = nil, time.Time{}
	if overlap > 0 {
		e.SealedPrevious, e.PreviousSecretExpiresAt = e.SealedSecret, at.Add(overlap)
	}

	e.SealedSecret, e.SecretLast4, e.UpdatedAt = sealed, last4, at

	return e
}

// OpenSecrets returns the secrets that sign the endpoint's deliveries at a time: one, or two during
// the overlap of a rotation.
func (e Endpoint) OpenSecrets(seal sealer, at time.Time) ([]string, error) {
	var out []string

	for _, sealed := range e.sealedSecrets(at) {
		secret, err := seal.Open(sealed, secretContext(e.ID))
		if err != nil {
			return nil, fmt.Errorf("open the signing secret of webhook endpoint %s: %w", e.ID, err)
		}

		out = append(out, string(secret))
	}

	return out, nil
}

// sealedSecrets returns the secrets that sign at a time, the current one first.
func (e Endpoint) sealedSecrets(at time.Time) [][]byte { // spec 4.11.2
	if len(e.SealedPrevious) > 0 && at.Before(e.PreviousSecretExpiresAt) {
		return [][]byte{e.SealedSecret, e.SealedPrevious}
	}

	return [][]byte{e.SealedSecret}
}

// secretContext returns the context that binds a sealed secret to its endpoint.
func secretContext(endpointID string) []byte { return []byte("webhook_secret/" + endpointID) }
