package txmgr_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// A transaction that waits as nodes say different things of it is named, until it is built.
func TestTransactionThatNodesDisagreeAboutIsNamed(t *testing.T) {
	w := newHarness(t, sim.Config{})
	disagree := true

	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodBuild && disagree {
			return fault.New(fault.Unavailable, "nodes_disagree", "the nodes say different things of the fee")
		}

		return nil
	})

	made := w.enqueue(wallet.Transaction{
		Owner:    owner,
		Network:  network,
		Kind:     wallet.TopUp,
		ObjectID: "release",
		GiveUpAt: w.now.Add(24 * time.Hour),
		Order: chain.Order{
			From:    w.master(),
			Outputs: []chain.Output{{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: coin(1)}},
			MaxFee:  milli(10),
		},
	})

	for range 4 {
		w.work()
		w.pass(15 * time.Second)
	}

	named := w.outbox.Disputes(network)
	if len(named) != 1 || named[0].Address != string(w.master().Address) ||
		!strings.Contains(named[0].Reason, "topup of release waits") {
		t.Fatalf("named are %+v", named)
	}

	disagree = false

	w.until(made.ID, wallet.Confirmed)

	if named := w.outbox.Disputes(network); len(named) != 0 {
		t.Errorf("after that are named %+v", named)
	}
}
