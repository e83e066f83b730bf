package txmgr_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// A node that estimates hardly any gas, and asks for a high price, has bytes signed that no node takes. What displaces
// them has to outbid their price with all the gas that it takes itself: the wallet goes on within CancelAfter.
func TestCancelOutbidsBytesOfLittleGas(t *testing.T) {
	w := newHarness(t, sim.Config{})
	start := w.now

	w.chain.SetFee(4*sim.DefaultBaseFee, sim.DefaultPriority)
	w.chain.SetNode(0, sim.NodeFaults{Gas: 1})

	most, err := w.chain.EstimateFee(t.Context(), chain.Order{
		From:    w.master(),
		Outputs: []chain.Output{{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: coin(1)}},
	})
	if err != nil {
		t.Fatal(err)
	}

	stuck := w.payoutTo(w.chain.NewAddress(), "SIM", coin(1), most)

	w.work()
	w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
	w.chain.SetNode(0, sim.NodeFaults{})

	if got := w.get(stuck.ID); got.Attempts[0].LastSendError == "" {
		t.Fatal("a node took it")
	}

	next := w.payout("SIM", coin(1))

	for w.get(next.ID).State != wallet.Confirmed {
		w.pass(5 * time.Minute)
		w.work()

		if w.now.After(start.Add(24 * time.Hour)) {
			t.Fatalf("the wallet never went on: %+v", w.get(stuck.ID))
		}
	}

	if got := w.get(stuck.ID); got.State != wallet.Failed {
		t.Errorf("what no node takes is %s", got.State)
	}
}
