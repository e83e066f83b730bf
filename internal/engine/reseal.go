package engine

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/event"
)

// Reseal encrypts every webhook signing secret anew with Config.SecretKey, so that the keys in
// OldSecretKeys that sealed them are needed no longer, and returns how many endpoints it did. Call
// it once, when all processes run with the new key. Stored answers to requests with an
// Idempotency-Key are not touched: they end after 24 hours. An endpoint that fails stops no other;
// the error names it, and its key has to stay until it is dealt with. To call it again does no
// harm.
func (e *Engine) Reseal(ctx context.Context) (done int, err error) {
	accounts, err := e.allAccounts(ctx)
	for _, a := range accounts {
		for _, livemode := range []bool{false, true} {
			n, oneErr := e.Webhooks.Reseal(ctx, event.Owner{AccountID: a.ID, Livemode: livemode})
			done += n
			err = errors.Join(err, oneErr)
		}
	}

	return done, err
}
