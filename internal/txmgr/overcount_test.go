package txmgr_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// overcounting is a network whose node counts too many transactions of a wallet, as one does that was routed to
// another network.
type overcounting struct {
	spy
	more uint64
}

func (o *overcounting) Nonce(ctx context.Context, address chain.Address) (uint64, error) {
	n, err := o.spy.Nonce(ctx, address)
	return n + o.more, err
}

// A count that no block explains takes no nonce of a wallet that has signed before, however long the node stays with
// it: everything signed later would wait behind the hole for ever.
func TestCountThatNoBlockExplainsTakesNoNonce(t *testing.T) {
	for name, more := range map[string]uint64{"by one": 1, "by far": 1000} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			node := &overcounting{spy: spy{w.chain, w}}
			w.driver = func() chain.Driver { return node }
			w.outbox = w.boot("overcounted")

			w.confirmed(w.payout("SIM", coin(1)).ID)

			node.more = more
			second := w.payout("SIM", coin(2))

			for range 10 {
				w.pass(30 * time.Second)
				_, _ = w.readAndWork()
			}

			if got := w.get(second.ID); got.State != wallet.Queued {
				t.Errorf(
					"it is %s with nonce %d while the node counts %d too many",
					got.State,
					got.Nonce,
					more,
				)
			}

			node.more = 0

			w.confirmed(second.ID)
			w.confirmed(w.payout("SIM", coin(3)).ID)
		})
	}
}

// readAndWork reads the network and has the worker work off what is due.
func (w *harness) readAndWork() (did bool, err error) {
	w.read()

	for range 20 {
		if did, err = w.outbox.Step(w.t.Context(), network); !did || err != nil {
			return did, err
		}
	}

	return did, err
}
