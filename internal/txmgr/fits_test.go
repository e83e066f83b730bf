package txmgr_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// fittingNode is a network whose blocks take no bytes but those that it built last.
type fittingNode struct {
	*sim.Chain
	unfit map[string]bool // by hash
}

func (n *fittingNode) Fits(_ context.Context, signed chain.Signed) (bool, error) {
	return !n.unfit[signed.TxHash], nil
}

func (n *fittingNode) Broadcast(ctx context.Context, signed chain.Signed) error {
	if n.unfit[signed.TxHash] {
		return fault.New(fault.Invalid, "transaction_malformed", "exceeds block gas limit")
	}

	return n.Chain.Broadcast(ctx, signed)
}

// Bytes that no block takes are replaced at once: they would stand in the way of all that the wallet signs later.
func TestBytesThatNoBlockTakesAreReplacedAtOnce(t *testing.T) {
	w := newHarness(t, sim.Config{})
	node := &fittingNode{Chain: w.chain, unfit: map[string]bool{}}
	w.driver = func() chain.Driver { return node }
	w.outbox = w.boot("fitting")

	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodBroadcast {
			return fault.New(fault.Unavailable, "node_unavailable", "not yet")
		}

		return nil
	})

	p := w.payout("SIM", coin(1))
	w.work()

	first := w.get(p.ID)
	node.unfit[first.TxHash] = true

	w.chain.SetIntercept(nil)

	for range 8 {
		w.work()
		w.pass(5 * time.Second)
	}

	got := w.get(p.ID)
	if len(got.Attempts) != 2 || got.TxHash == first.TxHash || got.Nonce != first.Nonce {
		t.Fatalf("%d attempts after 40 seconds, the first was refused: %s", len(got.Attempts),
			first.Attempts[0].LastSendError)
	}

	w.confirmed(p.ID)
}

// What waits as the network asks for more than it may cost is named, with its reason.
func TestTransactionAboveItsMaximumFeeIsNamed(t *testing.T) {
	w := newHarness(t, sim.Config{})
	p := w.payout("SIM", coin(1))
	w.chain.SetFee(1000*sim.DefaultBaseFee, sim.DefaultPriority)
	w.work()

	named := w.outbox.Disputes(network)
	if len(named) != 1 ||
		!strings.Contains(named[0].Reason, "payout of "+p.ObjectID+" waits: fee_above_maximum") {
		t.Fatalf("named are %+v", named)
	}

	w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
	w.confirmed(p.ID)

	if named := w.outbox.Disputes(network); len(named) != 0 {
		t.Errorf("after that are named %+v", named)
	}
}
