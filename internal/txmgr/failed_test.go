package txmgr_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// reverted returns a payout that failed as reverted, at finality. Transfers to its destination go on failing.
func (w *harness) reverted() wallet.Transaction {
	w.t.Helper()

	p := w.payout("USDX", dollars(5))
	w.work()
	w.chain.Freeze(p.Order.Outputs[0].To, "USDX", true)

	got := w.until(p.ID, wallet.Failed)
	if got.Failure != wallet.FailReverted || got.Fee.IsZero() {
		w.t.Fatalf("failed as %s with fee %s", got.Failure, got.Fee)
	}

	return got
}

// untilIdle works and mines until nothing of the wallet is on its way.
func (w *harness) untilIdle() {
	w.t.Helper()

	for range 40 {
		w.pass(2 * time.Minute)
		w.work()
	}

	live, err := w.store.LiveTransactions(w.t.Context(), network, w.master().Address)
	if err != nil {
		w.t.Fatal(err)
	}

	for _, t := range live {
		w.t.Errorf("%s %s at nonce %d is %s for ever", t.Kind, t.ID, t.Nonce, t.State)
	}
}

// spent returns the coin that left the wallet since it had an amount.
func (w *harness) spent(since chain.Amount) chain.Amount {
	return since.Sub(w.chain.Balance(w.master().Address, "SIM"))
}

// A fork deeper than the network's rule takes the block of a reverted payout away: its fee was not burnt, and what the
// cancel at its nonce burns instead is the payout's.
func TestForkTakesARevertedPayoutAway(t *testing.T) {
	w := newHarness(t, sim.Config{})
	had := w.chain.Balance(w.master().Address, "SIM")
	p := w.reverted()

	w.chain.Fork(sim.Fork{Depth: 12, Fate: sim.DropOrphan})
	w.read()

	if got := w.get(p.ID); got.State != wallet.Failed || !got.Fee.IsZero() || !got.Block.IsZero() {
		t.Fatalf("out of its block it is %s with fee %s in block %d", got.State, got.Fee, got.Block.Height)
	}

	for len(w.cancels()) == 0 || w.cancels()[0].State != wallet.Included {
		w.pass(10 * time.Second)
		w.work()
	}

	if got, cancel := w.get(
		p.ID,
	), w.cancels()[0]; got.Failure != wallet.FailReverted ||
		got.Fee != cancel.Fee {
		t.Errorf(
			"its cancel is in a block and cost %s, it is %s and shows %s",
			cancel.Fee,
			got.Failure,
			got.Fee,
		)
	}

	w.untilIdle()

	got, cancels := w.get(p.ID), w.cancels()
	if len(cancels) != 1 || cancels[0].ObjectID != p.ID || cancels[0].Nonce != p.Nonce {
		t.Fatalf("its nonce is filled by %+v", cancels)
	}

	want := wallet.Conflict{TxHash: cancels[0].TxHash, Own: true}
	if got.State != wallet.Failed || got.Failure != wallet.FailConflict || got.Conflict != want {
		t.Errorf("it is %s as %s against %+v, want %+v", got.State, got.Failure, got.Conflict, want)
	}

	if spent := w.spent(had); got.Fee != spent || spent.IsZero() {
		t.Errorf("%s left the wallet, %s is shown", spent, got.Fee)
	}

	w.confirmed(w.payout("SIM", coin(1)).ID)
}

// Whatever a fork makes of a reverted payout, and a later one of its cancel, what left the wallet is what the payout
// shows, and the destination is never paid while its transfers fail.
func TestRevertedPayoutShowsWhatLeft(t *testing.T) {
	for name, fate := range map[string]sim.OrphanFate{
		"forgotten":        sim.DropOrphan,
		"back in the pool": sim.ReturnToPool,
		"in another block": sim.Reinclude,
	} {
		for again, second := range map[string]sim.OrphanFate{
			"forgotten":        sim.DropOrphan,
			"back in the pool": sim.ReturnToPool,
			"in another block": sim.Reinclude,
		} {
			t.Run(name+", then "+again, func(t *testing.T) {
				w := newHarness(t, sim.Config{})
				had := w.chain.Balance(w.master().Address, "SIM")
				p := w.reverted()

				w.chain.SetFee(2*sim.DefaultBaseFee, sim.DefaultPriority)
				w.chain.Fork(sim.Fork{Depth: 12, Fate: fate})
				w.untilIdle()

				check := func(when string) {
					t.Helper()

					got, spent := w.get(p.ID), w.spent(had)
					if got.State != wallet.Failed || got.Fee != spent || spent.IsZero() {
						t.Errorf(
							"%s: %s left the wallet, it is %s (%s) and shows %s",
							when, spent, got.State, got.Failure, got.Fee,
						)
					}
				}

				check("after one fork")

				w.chain.SetFee(3*sim.DefaultBaseFee, sim.DefaultPriority)
				w.chain.Fork(sim.Fork{Depth: 42, Fate: second})
				w.untilIdle()
				check("after two")

				if to := p.Order.Outputs[0].To; !w.chain.Balance(to, "USDX").IsZero() {
					t.Error("the destination was paid")
				}
			})
		}
	}
}

// The next payout is signed before anybody looks at the reverted one: the cancel of its nonce is its own all the same.
func TestGapOfARevertedPayoutIsItsOwn(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.reverted()

	w.chain.Fork(sim.Fork{Depth: 12, Fate: sim.DropOrphan})

	next := w.payout("SIM", coin(1))
	w.confirmed(next.ID)
	w.untilIdle()

	cancels := w.cancels()
	if len(cancels) != 1 || cancels[0].ObjectID != p.ID {
		t.Fatalf("the cancels are %+v, not of %s", cancels, p.ID)
	}

	if got := w.get(p.ID); got.Fee != cancels[0].Fee || !got.Conflict.Own {
		t.Errorf("it shows a fee of %s and %+v, the cancel cost %s", got.Fee, got.Conflict, cancels[0].Fee)
	}
}

// A failed payout that a fork has paid after all is not revived: its transaction is one that is not on record.
func TestFailedPayoutThatAForkPays(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.reverted()

	w.chain.Freeze(p.Order.Outputs[0].To, "USDX", false)

	head, err := w.chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	w.chain.Fork(sim.Fork{Depth: head.Tip.Height - p.Block.Height + 1, Fate: sim.Reinclude})
	w.untilIdle()

	if got := w.get(p.ID); got.State != wallet.Failed {
		t.Errorf("it is %s", got.State)
	}

	rows, err := w.store.UnrecordedOutgoing(t.Context(), network, w.master().Address, time.Time{})
	if err != nil || len(rows) != 1 || rows[0].TxHash != p.TxHash || len(rows[0].Transfers) != 1 {
		t.Errorf("what is not on record is %+v, %v", rows, err)
	}

	w.confirmed(w.payout("SIM", coin(1)).ID)
}

// A reverted payout is watched as long as a confirmed one, and no longer.
func TestRevertedPayoutIsWatchedForADay(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.reverted()

	if p.DueAt.IsZero() {
		t.Error("nobody looks at it again")
	}

	w.pass(25 * time.Hour)
	w.work()

	if got := w.get(p.ID); !got.DueAt.IsZero() {
		t.Errorf("a day later it is looked at at %s", got.DueAt)
	}
}

// Bytes that another transaction displaced for good are paid after all, by a fork deeper than finality. The failed
// payout is not revived: its transaction is one that is not on record, so that nobody pays it again unseen.
func TestDisplacedPayoutThatAForkPays(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.work()

	bytes := w.get(p.ID).Attempts[0].Signed
	w.chain.Replace(bytes.TxHash)

	failed := w.until(p.ID, wallet.Failed)
	if failed.Failure != wallet.FailConflict {
		t.Fatalf("it failed as %s", failed.Failure)
	}

	head, err := w.chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	w.chain.Fork(sim.Fork{Depth: head.Tip.Height - 10, Fate: sim.DropOrphan})

	if err := w.chain.Broadcast(t.Context(), bytes); err != nil {
		t.Fatal(err)
	}

	w.untilIdle()
	w.arrived(p)

	if got := w.get(p.ID); got.State != wallet.Failed {
		t.Errorf("it is %s", got.State)
	}

	rows, err := w.store.UnrecordedOutgoing(t.Context(), network, w.master().Address, time.Time{})
	if err != nil || len(rows) != 1 || rows[0].TxHash != bytes.TxHash || len(rows[0].Transfers) != 1 {
		t.Errorf("what is not on record is %+v, %v", rows, err)
	}
}
