package txmgr_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// A wallet that was used before its network was read, and whose node counts too few of its transactions for a while:
// the nonces of its history are taken for free, and canceled. No block that is read ever shows what used them, and the
// cancels must not take the places of what is in flight for ever.
func TestCancelsBelowTheHistoryEnd(t *testing.T) {
	const history = 20 // more than may be in flight

	w := newHarness(t, sim.Config{})
	node := &overcounting{spy: spy{w.chain, w}}
	w.driver = func() chain.Driver { return node }
	w.outbox = w.boot("undercounted")

	w.useBefore(history)

	first := w.payout("SIM", coin(1))
	for range 3 { // no block is made
		w.now = w.now.Add(30 * time.Second)
		_, _ = w.readAndWork()
	}

	node.more = ^uint64(history - 1) // minus history

	for range 10 {
		w.now = w.now.Add(20 * time.Second)
		_, _ = w.readAndWork()
	}

	node.more = 0

	w.confirmed(first.ID)
	w.confirmed(w.payout("SIM", coin(3)).ID)

	for range 20 {
		w.pass(time.Minute)
		w.work()
	}

	live, err := w.store.LiveTransactions(t.Context(), network, w.master().Address)
	if err != nil {
		t.Fatal(err)
	}

	for _, left := range live {
		t.Errorf("%s at nonce %d is %s for ever", left.Kind, left.Nonce, left.State)
	}
}

// useBefore has the wallet make transactions that no block which is read shows.
func (w *harness) useBefore(history int) {
	w.t.Helper()

	keys := make([]string, history)

	for i := range history {
		w.chain.CancelNonce(w.master().Address)
		w.chain.Mine(1)

		keys[i] = chaindata.SpendKey(chain.Spend{Sender: w.master().Address, Nonce: uint64(i)})
	}

	w.read()

	if err := w.update(w.t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		for _, key := range keys {
			if err := tx.DeleteOutgoing(ctx, network, key); err != nil {
				return err
			}
		}

		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
}
