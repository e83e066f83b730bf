package txmgr_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store"
)

// While a network is not read up to its tip nothing new is signed there, and what waits costs one write together, not
// one each: the reading has to catch up.
func TestQueuedWaitTogetherWhileTheNetworkLags(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.chain.Fund(w.master().Address, "SIM", coin(50))
	w.read()

	var queued []wallet.Transaction
	for range 20 {
		queued = append(queued, w.payout("SIM", coin(1)))
	}

	tip := func(ahead uint64) {
		t.Helper()

		err := w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			c, _, err := tx.Cursor(ctx, network)
			if err != nil {
				return err
			}

			c.Tip = c.At
			c.Tip.Height += ahead

			return tx.PutCursor(ctx, &c)
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	tip(1000)

	w.process.Arm(0, false) // counts

	if did, err := w.outbox.Step(t.Context(), network); err != nil || did {
		t.Fatalf("Step: %v, %v", did, err)
	}

	if effects := w.process.Disarm(); !slices.Equal(effects, []string{"update"}) {
		t.Errorf("20 transactions that wait for the reading cost %v", effects)
	}

	for _, q := range queued {
		if got := w.get(q.ID); got.State != wallet.Queued || !got.DueAt.After(w.now) {
			t.Fatalf("%s is %s and due at %s", q.ID, got.State, got.DueAt)
		}
	}

	tip(0)
	w.pass(10 * time.Second)

	for _, q := range queued {
		w.until(q.ID, wallet.Confirmed)
	}
}
