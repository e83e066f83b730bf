package txmgr_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/follow"
)

// checkingNode is a network of outputs that says whether waiting bytes pay what it asks for.
type checkingNode struct {
	*outputs
	enough bool
}

func (n *checkingNode) PaysEnough(context.Context, chain.Signed) (bool, error) { return n.enough, nil }

// patientPayout is a payout that waits in the pool of a node.
func patientPayout(t *testing.T) (k *coinIndex, node *checkingNode, id string) {
	t.Helper()
	k = newCoinIndex(t)
	node = &checkingNode{
		enough: true,
		outputs: &outputs{
			Driver:  k.chain,
			offered: map[string]int{},
			status:  map[string]chain.TxStatus{},
		},
	}
	k.driver = func() chain.Driver { return node }
	k.outbox = k.boot("patient")

	k.take(follow.Batch{Blocks: []chain.Block{
		block(2, "a", []chain.Transfer{k.pays("m", k.master().Address)}),
	}})

	payout := k.payout("SIM", coin(1))
	k.work()

	return k, node, payout.ID
}

// Bytes that pay what the network asks for wait for a block, however long there is none.
func TestReplacedOnlyWhenTheMarketMoved(t *testing.T) {
	k, node, id := patientPayout(t)

	k.wait(8 * time.Hour)

	if got := k.get(id); len(got.Attempts) != 1 || len(k.cancels()) != 0 {
		t.Fatalf("%d attempts and %d cancels at a constant estimate", len(got.Attempts), len(k.cancels()))
	}

	node.enough = false

	k.wait(time.Hour)

	if got := k.get(id); len(got.Attempts) != 2 {
		t.Errorf("%d attempts after the estimate rose", len(got.Attempts))
	}
}

// Six blocks that leave the bytes out show that the estimate is wrong.
func TestReplacedWhenBlocksPassed(t *testing.T) {
	k, _, id := patientPayout(t)

	for height := uint64(3); height <= 8; height++ {
		if got := k.get(id); len(got.Attempts) != 1 {
			t.Fatalf("%d attempts before block %d", len(got.Attempts), height)
		}

		k.take(follow.Batch{Blocks: []chain.Block{block(height, "a", nil)}})
		k.wait(4 * time.Minute)
	}

	if got := k.get(id); len(got.Attempts) != 2 {
		t.Errorf("%d attempts after six blocks", len(got.Attempts))
	}
}
