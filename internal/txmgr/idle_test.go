package txmgr_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// updates returns how many transactions of the store something takes.
func (w *harness) updates(do func() error) (n int) {
	w.t.Helper()

	w.process.Arm(0, false)

	if err := do(); err != nil {
		w.t.Fatal(err)
	}

	for _, effect := range w.process.Disarm() {
		if effect == "update" {
			n++
		}
	}

	return n
}

// Balances that are on record for the newest block are read, and not written again.
func TestBalancesOfOneBlockAreWrittenOnce(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.confirmed(w.payout("SIM", coin(1)).ID)

	refresh := func() error { return w.outbox.RefreshBalances(t.Context(), network) }

	if err := w.outbox.RefreshBalances(t.Context(), network, w.master()); err != nil {
		t.Fatal(err)
	}

	if n := w.updates(refresh); n != 0 {
		t.Errorf("balances that have not changed are written in %d transactions", n)
	}

	w.chain.Mine(1)

	if n := w.updates(refresh); n != 1 {
		t.Errorf("balances of a new block are written in %d transactions", n)
	}
}

// Where blocks are read, a fork makes what it took due at once: until then nobody looks at a confirmed transaction
// but a few times a day.
func TestConfirmedTransactionsAreSeldomLookedAt(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.confirmed(p.ID)

	looks := 0

	for range 26 * 4 {
		w.now = w.now.Add(15 * time.Minute)
		w.chain.Mine(1)
		w.read()

		did, err := w.outbox.Step(t.Context(), network)
		if err != nil {
			t.Fatal(err)
		}

		if did {
			looks++
		}
	}

	if looks == 0 || looks > 7 {
		t.Errorf("a confirmed transaction is looked at %d times a day", looks)
	}

	if got := w.get(p.ID); got.State != wallet.Confirmed || !got.DueAt.IsZero() {
		t.Errorf("a day later it is %s, and due at %s", got.State, got.DueAt)
	}

	if due, err := w.store.DueTransactions(t.Context(), network, w.now, 0); err != nil ||
		slices.ContainsFunc(due, func(t wallet.Transaction) bool { return t.ID == p.ID }) {
		t.Errorf("it is still due: %v", err)
	}
}
