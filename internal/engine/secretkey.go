package engine

import (
	"context"

	"github.com/seed-8ee7f392/payments/fault"
)

// checkSecretKey verifies the newest account with Config.SecretKey. In a process with another key every
// request fails.
//
// Errors: fault.Unavailable with code secret_key_unknown, and those of the store. An account that was changed
// outside this service is not an error: it concerns only its merchant.
func (e *Engine) checkSecretKey(ctx context.Context) error {
	newest, err := e.config.Store.Accounts(ctx, "", 1)
	if err != nil || len(newest) == 0 {
		return err
	}

	if _, err = e.Accounts.Verify(ctx, newest[0].ID); fault.Code(err) != "secret_key_unknown" {
		return nil
	}

	return fault.Wrap(
		err,
		fault.Unavailable,
		"secret_key_unknown",
		"payments.Config.SecretKey is not the key with which the records are authenticated: start with that one, or "+
			"name it in OldSecretKeys",
	)
}
