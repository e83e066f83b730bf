package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
)

// Reseal encrypts every webhook signing secret with Config.SecretKey, authenticates every account, API key and
// address with it, and returns how many rows it changed. OldSecretKeys are then not needed for them any more. Call it
// once all processes run with the new key; it is idempotent.
//
// Stored answers to requests with an Idempotency-Key are not touched: they expire after 24 hours. Nor are payouts,
// nor the options of invoices that nobody selected: their old key has to stay until they have ended. A row that fails
// does not stop the others. The error names it, and its old key has to stay until it is repaired.
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
