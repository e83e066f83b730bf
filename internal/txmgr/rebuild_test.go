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

// onReplaced makes a payout that was replaced once, and one or two that rest on its replacement, one on the
// other. The first bytes of the parent then get into a final block.
func onReplaced(
	t *testing.T,
	dependents int,
	careless bool,
) (k *coinIndex, parent wallet.Transaction, all []string) {
	t.Helper()
	k, parent, _ = onChange(t, true)
	k.wait(5 * time.Minute)

	parent = k.get(parent.ID)
	if len(parent.Attempts) != 2 {
		t.Fatalf("the parent has %d attempts", len(parent.Attempts))
	}

	pool := []chain.PoolTx{k.change(parent.TxHash, "m")}
	k.take(follow.Batch{PoolRead: true, Pool: pool})

	for n := range dependents {
		p := k.payout("SIM", coin(uint64(2+n)))
		k.work()

		p = k.get(p.ID)
		all = append(all, p.ID)
		pool = append(pool, k.change(p.TxHash, pool[n].TxHash))
		k.take(follow.Batch{PoolRead: true, Pool: pool})
	}

	k.outputs.careless = careless

	first := parent.Attempts[0].Signed.TxHash
	mined := block(3, "a", []chain.Transfer{k.pays(first, k.master().Address)}, spends(first, "m")...)
	k.outputs.status[first] = chain.TxStatus{State: chain.TxIncluded, Block: mined.Ref}
	k.take(buried(mined, "a"))
	k.take(follow.Batch{PoolRead: true})

	return k, parent, all
}

// change is a waiting transaction that spends one output and pays the wallet one.
func (k *coinIndex) change(hash, spent string) chain.PoolTx {
	return chain.PoolTx{
		TxHash:    hash,
		Transfers: []chain.Transfer{k.pays(hash, k.master().Address)},
		Spent:     spends(hash, spent),
	}
}

// What rests on a dead transaction is built again on what killed it: the two exclude each other.
func TestPayoutIsBuiltAgainOnWhatKilledItsParent(t *testing.T) {
	k, parent, dependents := onReplaced(t, 1, false)
	k.wait(time.Minute)

	got := k.get(dependents[0])
	if got.State != wallet.Broadcast || len(got.Attempts) != 2 {
		t.Fatalf("it is %s %s with %d attempts", got.State, got.Failure, len(got.Attempts))
	}

	onFirst := chain.Outpoint{TxHash: parent.Attempts[0].Signed.TxHash}
	if in := walletstate.LastAttempt(&got).Signed.Inputs; !slices.Equal(in, []chain.Outpoint{onFirst}) {
		t.Errorf("it spends %v, not the change of what killed its parent", in)
	}

	if in := got.Attempts[0].Signed.Inputs; in[0].TxHash != parent.Attempts[1].Signed.TxHash {
		t.Errorf("before it rested on %v", in)
	}

	// A later replacement excludes the dead bytes as well.
	k.wait(5 * time.Minute)

	if got = k.get(
		dependents[0],
	); len(got.Attempts) != 3 ||
		walletstate.LastAttempt(&got).Signed.Inputs[0] != onFirst {
		t.Errorf("it is replaced by %+v", walletstate.LastAttempt(&got).Signed)
	}
}

// A chain of payouts is built again from below, each on the one before.
func TestChainOfPayoutsIsBuiltAgain(t *testing.T) {
	k, _, dependents := onReplaced(t, 2, false)
	k.wait(time.Minute)

	lower := k.get(dependents[0])
	if len(lower.Attempts) != 2 {
		t.Fatalf("the lower one is %s %s with %d attempts", lower.State, lower.Failure, len(lower.Attempts))
	}

	rebuilt := lower.TxHash
	k.take(follow.Batch{
		PoolRead: true,
		Pool: []chain.PoolTx{
			k.change(rebuilt, walletstate.LastAttempt(&lower).Signed.Inputs[0].TxHash),
		},
	})
	k.wait(time.Minute)

	upper := k.get(dependents[1])
	if len(upper.Attempts) != 2 || walletstate.LastAttempt(&upper).Signed.Inputs[0].TxHash != rebuilt {
		t.Errorf(
			"the upper one is %s %s with %+v",
			upper.State,
			upper.Failure,
			walletstate.LastAttempt(&upper).Signed,
		)
	}
}

// Bytes that could be included besides the dead ones are thrown away.
func TestRebuiltPayoutExcludesTheDeadOne(t *testing.T) {
	k, _, dependents := onReplaced(t, 1, true)
	k.take(follow.Batch{Blocks: []chain.Block{
		block(6, "a", []chain.Transfer{k.pays("other", k.master().Address)}),
		block(7, "a", nil), block(8, "a", nil),
	}})
	k.wait(time.Minute)

	if got := k.get(dependents[0]); got.State != wallet.Broadcast || len(got.Attempts) != 1 {
		t.Errorf("it is %s with %d attempts", got.State, len(got.Attempts))
	}

	k.wait(3 * time.Hour)

	if got := k.get(dependents[0]); got.Failure != wallet.FailConflict || !got.Conflict.Own {
		t.Errorf("when it is stale it is %s %s against %+v", got.State, got.Failure, got.Conflict)
	}
}
