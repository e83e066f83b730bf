package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
)

// Reseal encrypts every webhook signing secret with Config.SecretKey, authenticates every account, API key
// and address with it, and returns how many rows it changed. These rows then no longer need OldSecretKeys.
// Call it once all processes run with the new key; it is idempotent.
//
// Reseal leaves stored answers to requests with an Idempotency-Key alone: they expire after 24 hours. It also
// leaves payouts and unselected options of invoices alone: keep their old key until they have ended. A row
// that fails does not stop the others. The error names it; keep its old key until the row is repaired.
func (e *Engine) Reseal(ctx context.Context) (done int, err error) {
	accounts, err := e.allAccounts(ctx)
	for _, a := range accounts {
		n, oneErr := e.Accounts.Reseal(ctx, a.ID)
		done += n
		err = errors.Join(err, oneErr)

		for _, livemode := range []bool{false, true} {
			n, oneErr := e.Webhooks.Reseal(ctx, event.Owner{AccountID: a.ID, Livemode: livemode})
			done += n
			err = errors.Join(err, oneErr)
		}
	}

	for _, space := range e.spaces() {
		n, oneErr := e.Invoices.ResealAddresses(ctx, space)
		done += n
		err = errors.Join(err, oneErr)
	}

	return done, err
}

// spaces returns the key spaces of the networks, each once.
func (e *Engine) spaces() (all []chain.Space) {
	for _, d := range e.Networks.Drivers() {
		n := d.Network()
		if space := n.Space(); !slices.Contains(all, space) {
			all = append(all, space)
		}
	}

	return all
}
