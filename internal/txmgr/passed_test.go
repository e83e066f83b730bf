package txmgr_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// Bytes may be in blocks that no node had when the network was resumed above them: that they have expired is proven
// only once these were read too, however much time goes by, and nothing is paid twice.
func TestBytesThatPassedBlocksMayHoldAreNotDead(t *testing.T) {
	w := newHarness(t, sim.Config{ValidBlocks: 5})
	p := w.payout("SIM", coin(1))
	w.work()

	w.chain.Mine(1) // holds it
	w.chain.MineEmpty(20)
	w.chain.Prune(w.tip() - 4)
	w.forgetful = true // a node that was restored knows nothing of before

	w.read()
	w.wantGap()

	for range 5 {
		w.chain.MineEmpty(3)
		w.wait(5 * time.Minute)
	}

	if got := w.get(p.ID); len(got.Attempts) != 1 || got.State == wallet.Failed {
		t.Fatalf(
			"it may be in a block that nobody read, and is %s after %d attempts",
			got.State,
			len(got.Attempts),
		)
	}

	w.forgetful = false
	w.chain.Prune(0)
	w.confirmed(p.ID)
	w.arrived(w.get(p.ID))
}

// What is signed after a network was resumed above such blocks expires as ever.
func TestBytesSignedAbovePassedBlocksExpire(t *testing.T) {
	w := newHarness(t, sim.Config{ValidBlocks: 5})
	w.chain.MineEmpty(20)
	w.chain.Prune(w.tip() - 4)
	w.read()
	w.wantGap()
	w.work()

	p := w.payout("SIM", coin(1))
	w.work()
	w.chain.Drop(w.get(p.ID).TxHash)
	w.chain.FailNext(sim.MethodBroadcast, sim.Unavailable(), 1000)
	w.chain.MineEmpty(10)
	w.wait(10 * time.Second)

	if got := w.get(p.ID); len(got.Attempts) != 2 {
		t.Errorf("after the proof that it is dead there are %d attempts: %s", len(got.Attempts), got.State)
	}
}

// tip returns the height of the newest block.
func (w *harness) tip() uint64 {
	w.t.Helper()

	head, err := w.chain.Head(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}

	return head.Tip.Height
}

// wantGap fails the test unless blocks were passed.
func (w *harness) wantGap() {
	w.t.Helper()

	ranges, err := w.store.Ranges(w.t.Context(), network, 10)
	if err != nil || len(ranges) != 1 || !scanstate.IsGap(ranges[0]) {
		w.t.Fatalf("passed were %+v: %v", ranges, err)
	}
}
