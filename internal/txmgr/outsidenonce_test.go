package txmgr_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// unsent returns a payout whose bytes are stored and did not reach the network.
func (w *durable) unsent(p wallet.Transaction) wallet.Transaction {
	w.t.Helper()

	cut := true

	w.windows.SetIntercept(func(_ context.Context, m sim.Method) error {
		if cut && m == sim.MethodBroadcast {
			return fault.New(fault.Unavailable, "node_unavailable", "the network cannot be reached")
		}

		return nil
	})
	w.work()

	cut = false

	now := w.get(p.ID)
	if len(now.Attempts) != 1 || len(w.windows.Waiting()) != 0 {
		w.t.Fatalf("%d attempts, %d transactions wait", len(now.Attempts), len(w.windows.Waiting()))
	}

	return now
}

// Somebody with the key advances the nonce account after a payout was signed and before its bytes were sent. They can
// be included no more: the payout fails once that is final, as a conflict, and was paid by nobody; the next one uses
// what the account holds now. Where the block of the advance leaves the chain before, the same bytes pay it.
func TestNonceAdvancedBeforeTheBytesWereSent(t *testing.T) {
	eachReading(t, 1, func(t *testing.T, w *durable) {
		lost := w.payout("SIM", milli(5))
		stale := w.unsent(lost)

		w.rival(w.nonceOf(stale))
		w.waits(2 * time.Minute)

		if now := w.get(lost.ID); now.State == wallet.Failed || len(now.Attempts) != 1 {
			t.Fatalf("before the advance is final it is %s after %d attempts", now.State, len(now.Attempts))
		}

		now := w.until(lost.ID, wallet.Failed)
		if now.Failure != wallet.FailConflict || now.Conflict.Own || len(now.Attempts) != 1 {
			t.Errorf("failed as %s by %+v, after %d attempts", now.Failure, now.Conflict, len(now.Attempts))
		}

		// Its bytes are known to more than us.
		if err := w.windows.Broadcast(t.Context(), walletstate.LastAttempt(&now).Signed); err == nil {
			w.windows.Mine(1)
		}

		next := w.until(w.payout("SIM", milli(3)).ID, wallet.Confirmed)
		if w.paid(next) != milli(3) || !w.paid(lost).IsZero() || w.nonceOf(next) == w.nonceOf(now) {
			t.Errorf("the next has %s, the lost one %s", w.paid(next), w.paid(lost))
		}

		forked := w.payout("SIM", milli(7))
		stale = w.unsent(forked)
		w.rival(w.nonceOf(stale))
		w.waits(time.Minute)
		w.windows.Fork(sim.Fork{Depth: 1, Fate: sim.DropOrphan})
		w.now = w.now.Add(time.Minute)

		now = w.until(forked.ID, wallet.Confirmed)
		if w.paid(forked) != milli(7) || now.TxHash != walletstate.LastAttempt(&stale).Signed.TxHash {
			t.Errorf("%s arrived after the fork, by %s", w.paid(forked), now.TxHash)
		}
	})
}
