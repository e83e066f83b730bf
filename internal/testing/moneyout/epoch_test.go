package moneyout_test

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// A process that serves before it works on anything gives out no number that was given out since the backup: the new
// epoch begins before its first change.
func TestEpochBeginsBeforeTheFirstChange(t *testing.T) {
	onSQLite(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		address := func() chain.Address {
			d, err := w.engine.Invoices.CreateDeposit(
				t.Context(), invoice.DepositParams{Owner: w.owner, Network: network},
			)
			w.must(err)

			return d.Address
		}

		dump()

		shown := map[chain.Address]bool{}
		for range 3 {
			shown[address()] = true
		}

		w.change = func(c *payments.Config) { c.Epoch = 1 }

		restore()

		err := w.engine.UpdateIn(t.Context(), nil, func(context.Context, payments.Tx) error { return nil })
		wantFault(t, err, fault.Unavailable, "epoch_not_begun")

		for range 3 {
			if next := address(); shown[next] {
				t.Errorf("%s was shown to somebody else", next)
			}
		}

		h, err := w.engine.Health(t.Context())
		w.must(err)

		if len(h.Wallets) == 0 || h.Wallets[0].Reason != "epoch" {
			t.Errorf("frozen are %+v", h.Wallets)
		}
	})
}
