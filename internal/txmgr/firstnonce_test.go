package txmgr_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// twoCounts is a network with a preferred node that counts more or fewer transactions of a wallet than there are, and
// a second one that counts right.
type twoCounts struct {
	overcounting
	silent bool // the second node does not answer
}

func (c *twoCounts) AgreedNonce(ctx context.Context, address chain.Address, _ chain.Ref) (uint64, error) {
	if c.silent {
		return 0, fault.Wrap(chain.ErrNotAgreed, fault.Unavailable, "nodes_missing", "no second node")
	}

	return c.spy.Nonce(ctx, address)
}

// The first nonce of a wallet without a history is one that two nodes count, where there are two: a count too high
// leaves a hole behind which the wallet is dead, one too low makes bytes that no block ever takes.
func TestFirstNonceIsOneThatTwoNodesCount(t *testing.T) {
	for name, c := range map[string]struct {
		history int
		more    uint64
		silent  bool
	}{
		"by one too many":                {0, 1, false},
		"by far too many":                {0, 1000, false},
		"too many, after a history":      {3, 2, false},
		"none, after a history":          {3, ^uint64(2), false},
		"too few, after a history":       {3, ^uint64(0), false},
		"right, and nobody confirms it":  {3, 0, true},
		"zero, and nobody confirms it":   {0, 0, true},
		"too many, nobody denies it":     {0, 5, true},
		"too few, nobody denies a count": {3, ^uint64(2), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			node := &twoCounts{overcounting: overcounting{spy: spy{w.chain, w}}}
			w.driver = func() chain.Driver { return node }
			w.outbox = w.boot("first")

			w.useBefore(c.history)

			node.more, node.silent = c.more, c.silent
			first := w.payout("SIM", coin(1))

			for range 20 {
				w.pass(30 * time.Second)
				_, _ = w.readAndWork()
			}

			if got := w.get(first.ID); got.State != wallet.Queued {
				t.Fatalf("it is %s with nonce %d after %d transactions", got.State, got.Nonce, c.history)
			}

			node.more, node.silent = 0, false

			if got := w.confirmed(first.ID); got.Nonce != uint64(c.history) {
				t.Errorf("it took nonce %d after %d transactions", got.Nonce, c.history)
			}

			// From then on the records count.
			node.silent = true

			w.confirmed(w.payout("SIM", coin(2)).ID)
		})
	}
}

// What a second node says of a count is asked for at the height that was read.
func TestFirstNonceIsConfirmedWhereItWasRead(t *testing.T) {
	w := newHarness(t, sim.Config{})
	node := &atHeight{twoCounts: twoCounts{overcounting: overcounting{spy: spy{w.chain, w}}}}
	w.driver = func() chain.Driver { return node }
	w.outbox = w.boot("first")

	c, _, err := w.store.Cursor(t.Context(), network)
	if err != nil {
		t.Fatal(err)
	}

	w.payout("SIM", coin(1))
	w.work()

	if node.asked != c.At.Height || node.asked == 0 {
		t.Errorf("asked at %d, read to %d", node.asked, c.At.Height)
	}
}

type atHeight struct {
	twoCounts
	asked uint64
}

func (a *atHeight) AgreedNonce(ctx context.Context, address chain.Address, at chain.Ref) (uint64, error) {
	if a.asked != 0 {
		return 0, errors.New("asked twice")
	}

	a.asked = at.Height

	return a.twoCounts.AgreedNonce(ctx, address, at)
}

// The preferred node of two lies about a wallet's count: on the simulated network as on a real one.
func TestFirstNonceBesideANodeThatLies(t *testing.T) {
	for name, lie := range map[string]uint64{"too many": 7, "too few": 0} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{Nodes: 2})
			w.useBefore(3)
			w.chain.SetNode(0, sim.NodeFaults{Counts: map[chain.Address]uint64{w.master().Address: lie}})

			p := w.payout("SIM", coin(1))

			for range 10 {
				w.pass(30 * time.Second)
				_, _ = w.readAndWork()
			}

			if got := w.get(p.ID); got.State != wallet.Queued {
				t.Fatalf("it is %s with nonce %d", got.State, got.Nonce)
			}

			w.chain.SetNode(0, sim.NodeFaults{})

			if got := w.confirmed(p.ID); got.Nonce != 3 {
				t.Errorf("it took nonce %d", got.Nonce)
			}
		})
	}
}

// A second node that is always some blocks behind the one that is read confirms the first nonce where it has got to.
func TestFirstNonceIsConfirmedByANodeBehind(t *testing.T) {
	w := newHarness(t, sim.Config{Nodes: 2})
	w.chain.SetNode(1, sim.NodeFaults{Behind: 2})

	p := w.payout("SIM", coin(1))

	for range 20 {
		w.pass(2 * time.Second)
		_, _ = w.readAndWork()
	}

	if got := w.get(p.ID); len(got.Attempts) == 0 {
		t.Errorf("it is %s after 40 seconds", got.State)
	}
}
