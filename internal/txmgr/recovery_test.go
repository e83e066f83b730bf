package txmgr_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// recovery orders what a driver plans for a stray. The simulated network has none: it pays the output.
func (w *harness) recovery(account chain.Address) chain.Order {
	return chain.Order{
		From:     w.master(),
		MaxFee:   milli(10),
		Recovers: &chain.Stray{Address: w.master().Address, Account: account, Amount: coin(1)},
		Outputs:  []chain.Output{{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: coin(1)}},
	}
}

// reserved returns what is reserved of the master wallet, in base units of the native coin.
func (w *harness) reserved() chain.Amount {
	w.t.Helper()

	b, _, err := w.store.Balance(w.t.Context(), network, w.master().Address, w.asset("SIM").ID)
	if err != nil {
		w.t.Fatal(err)
	}

	return b.Reserved
}

// react gives the moves of recoveries to the manager, as the engine does.
func (w *harness) react() {
	w.t.Helper()

	err := w.update(w.t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		for _, t := range w.moves {
			if err := w.outbox.RecoveryTx(ctx, tx, t); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// A recovery pays once, wherever its process dies, and however often it is asked for.
func TestARecoveryPaysOnceWhereverItsProcessDies(t *testing.T) {
	for at, killed := 1, true; killed; at++ {
		killed = false

		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(at, after), func(t *testing.T) {
				w := newHarness(t, sim.Config{})
				order := w.recovery("stray")
				w.process.Arm(at, after)

				queued, err := w.outbox.Recover(t.Context(), owner, network, order)
				for w.process.Dead() {
					killed, w.outbox = true, w.boot("next")
					queued, err = w.outbox.Recover(t.Context(), owner, network, order)
				}

				if err != nil {
					t.Fatal(err)
				}

				for range 3 {
					again, err := w.outbox.Recover(t.Context(), owner, network, order)
					if !w.process.Dead() && (err != nil || again.ID != queued.ID) {
						t.Fatalf("asked for again it is %s, %v; it was %s", again.ID, err, queued.ID)
					}

					killed = killed || w.process.Dead()
					w.work()
				}

				killed = killed || len(w.process.Disarm()) >= at
				w.confirmed(queued.ID)

				if rows, err := w.store.TransactionsOf(t.Context(), "stray"); err != nil || len(rows) != 1 {
					t.Errorf("there are %d recoveries, %v", len(rows), err)
				}

				if err := w.outbox.RefreshBalances(t.Context(), network, w.master()); err != nil {
					t.Fatal(err)
				}

				if left := w.reserved(); !left.IsZero() {
					t.Errorf("%s are still reserved", left)
				}
			})
		}
	}
}

// Only the fee of a recovery is reserved: what it moves is no balance. It is given back when the recovery fails, and
// the account may be recovered again; another account has a recovery of its own.
func TestAFailedRecoveryGivesItsReservationBack(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.policy = func(chain.SignRequest) error { return chain.Refuse("no") }

	again := func(account chain.Address) wallet.Transaction {
		t.Helper()

		queued, err := w.outbox.Recover(t.Context(), owner, network, w.recovery(account))
		if err != nil {
			t.Fatal(err)
		}

		return queued
	}

	first, other := again("stray"), again("another")
	if got := w.reserved(); got != milli(20) || first.ID == other.ID {
		t.Errorf("of two recoveries, %s and %s, %s are reserved", first.ID, other.ID, got)
	}

	w.until(first.ID, wallet.Failed)
	w.until(other.ID, wallet.Failed)
	w.react()

	if err := w.outbox.RefreshBalances(t.Context(), network, w.master()); err != nil {
		t.Fatal(err)
	}

	if got := w.reserved(); !got.IsZero() {
		t.Errorf("%s are reserved for recoveries that failed", got)
	}

	w.policy = nil

	second := again("stray")
	if second.ID == first.ID {
		t.Fatal("it is the one that failed")
	}

	w.confirmed(second.ID)
}

// A fork takes the block of a recovery away. Its fee is reserved again, and nothing else is.
func TestAForkReservesOnlyTheFeeOfARecovery(t *testing.T) {
	w := newHarness(t, sim.Config{})

	queued, err := w.outbox.Recover(t.Context(), owner, network, w.recovery("stray"))
	if err != nil {
		t.Fatal(err)
	}

	w.until(queued.ID, wallet.Included)

	if err := w.outbox.RefreshBalances(t.Context(), network, w.master()); err != nil {
		t.Fatal(err)
	}

	w.fork(sim.Fork{Depth: 1})
	w.until(queued.ID, wallet.Broadcast)

	back := w.get(queued.ID)
	if got, want := w.reserved(), walletstate.LastAttempt(&back).Signed.MaxFee; got != want {
		t.Errorf("%s are reserved, want the fee of %s", got, want)
	}

	w.confirmed(queued.ID)
}
