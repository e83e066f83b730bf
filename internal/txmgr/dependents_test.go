package txmgr_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// onChange makes a payout whose change waits in the pool and, unless alone, another one that spends it.
func onChange(t *testing.T, alone bool) (k *coinIndex, parent, child wallet.Transaction) {
	t.Helper()
	k = newCoinIndex(t)
	master := k.master().Address
	k.take(follow.Batch{Blocks: []chain.Block{block(2, "a", []chain.Transfer{k.pays("m", master)})}})

	parent = k.payout("SIM", coin(1))
	k.work()
	parent = k.get(parent.ID)
	k.take(follow.Batch{
		PoolRead: true,
		Pool: []chain.PoolTx{{
			TxHash:    parent.TxHash,
			Transfers: []chain.Transfer{k.pays(parent.TxHash, master)},
			Spent:     spends(parent.TxHash, "m"),
		}},
	})

	if !alone {
		child = k.payout("SIM", coin(2))
		k.work()
		child = k.get(child.ID)
	}

	return k, parent, child
}

// Nodes may not show the change in their pool. The payout waits for its block, and does not fail because money is
// missing.
func TestPayoutWaitsForChangeThatThePoolDoesNotShow(t *testing.T) {
	k := newCoinIndex(t)
	master := k.master().Address
	k.take(follow.Batch{Blocks: []chain.Block{block(2, "a", []chain.Transfer{k.pays("m", master)})}})

	parent := k.payout("SIM", coin(1))
	k.work()

	child := k.payout("SIM", coin(2))
	k.wait(20 * time.Minute)

	if got := k.get(child.ID); got.State != wallet.Queued {
		t.Fatalf("while the change waits it is %s %s", got.State, got.Failure)
	}

	parent = k.get(parent.ID)
	paid := walletstate.LastAttempt(&parent).Signed.TxHash
	k.take(follow.Batch{Blocks: []chain.Block{
		block(3, "a", []chain.Transfer{k.pays(paid, master)}, spends(paid, "m")...),
	}})
	k.wait(time.Minute)

	if got := k.get(child.ID); got.State != wallet.Signed && got.State != wallet.Broadcast {
		t.Errorf("once the change is in a block it is %s %s", got.State, got.Failure)
	}
}

// Pitfall 48. What others rest on is never replaced; what rests on it is.
func TestParentOfAPayoutIsNotReplaced(t *testing.T) {
	k, parent, child := onChange(t, false)

	if got := child.Attempts[0].Signed.UnconfirmedParents; !slices.Equal(got, spends(parent.TxHash, "m")) {
		t.Fatalf("it rests on %+v", got)
	}

	k.wait(5 * time.Minute)

	if a, b := k.get(parent.ID), k.get(child.ID); len(a.Attempts) != 1 || len(b.Attempts) != 2 {
		t.Errorf("the parent has %d attempts, the child %d", len(a.Attempts), len(b.Attempts))
	}

	child = k.get(child.ID)
	if got := walletstate.LastAttempt(&child).Signed.UnconfirmedParents; len(got) != 1 {
		t.Errorf("its replacement rests on %+v", got)
	}

	k.wait(7 * time.Hour)

	for _, c := range k.cancels() {
		if c.ObjectID == parent.ID {
			t.Errorf("the parent is cancelled by %+v", c)
		}
	}
}

// A payout that rests on another one dies with it, and names what took the parent's coin.
func TestPayoutDiesWithItsParent(t *testing.T) {
	k, parent, child := onChange(t, false)
	k.take(buried(block(3, "a", nil, spends("thief", "m")...), "a"))
	k.wait(time.Minute)

	for _, id := range []string{parent.ID, child.ID} {
		got := k.get(id)
		if got.Failure != wallet.FailConflict || got.Conflict != (wallet.Conflict{TxHash: "thief"}) {
			t.Errorf("it is %s %s against %+v", got.State, got.Failure, got.Conflict)
		}
	}
}

// A replacement makes other change: nothing is built on the old one any more.
func TestReplacementTakesItsOldChangeAlong(t *testing.T) {
	k, parent, _ := onChange(t, true)
	k.wait(5 * time.Minute)

	if got := k.get(parent.ID); len(got.Attempts) != 2 {
		t.Fatalf("%d attempts", len(got.Attempts))
	}

	k.want("without the old change", k.state(), "m:0@2")
}

// A fork may take away the block of what a payout rests on, and another branch spend its coin otherwise: the
// payout dies with it as with one that waits.
func TestPayoutDiesWithAParentThatAForkTookAway(t *testing.T) {
	k, parent, _ := onChange(t, true)
	k.take(follow.Batch{Blocks: []chain.Block{
		block(
			3, "a", []chain.Transfer{k.pays(parent.TxHash, k.master().Address)},
			spends(parent.TxHash, "m")...,
		),
	}})

	child := k.payout("SIM", coin(2))
	k.work()

	child = k.get(child.ID)
	if got := child.Attempts[0].Signed.UnconfirmedParents; !slices.Equal(got, spends(parent.TxHash, "m")) {
		t.Fatalf("it rests on %+v", got)
	}

	forked := buried(block(3, "b", nil, spends("thief", "m")...), "b")
	forked.Rewound, forked.ForkedFrom = true, chain.Ref{Height: 2}
	k.take(forked)
	k.wait(time.Minute)

	for _, id := range []string{parent.ID, child.ID} {
		if got := k.get(id); got.Failure != wallet.FailConflict || got.Conflict.TxHash != "thief" {
			t.Errorf("it is %s %s against %+v", got.State, got.Failure, got.Conflict)
		}
	}
}

// Likewise a payment to the master wallet, whose payer spends the money otherwise on the other branch.
func TestPayoutDiesWithThePaymentThatFundedIt(t *testing.T) {
	k := newCoinIndex(t)
	k.take(follow.Batch{Blocks: []chain.Block{
		block(
			2, "a", []chain.Transfer{k.pays("funding", k.master().Address)},
			spends("funding", "payer's")...,
		),
	}})

	p := k.payout("SIM", coin(1))
	k.work()

	p = k.get(p.ID)
	if got := p.Attempts[0].Signed.UnconfirmedParents; !slices.Equal(got, spends("funding", "payer's")) {
		t.Fatalf("it rests on %+v", got)
	}

	forked := buried(block(2, "b", nil, spends("elsewhere", "payer's")...), "b")
	forked.Rewound, forked.ForkedFrom = true, chain.Ref{Height: 1}
	k.take(forked)
	k.wait(time.Minute)

	if got := k.get(p.ID); got.Failure != wallet.FailConflict || got.Conflict.TxHash != "elsewhere" {
		t.Errorf("it is %s %s against %+v", got.State, got.Failure, got.Conflict)
	}
}
