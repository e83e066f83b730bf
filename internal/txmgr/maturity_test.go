package txmgr_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
)

// available returns what the master wallet may spend by its stored balance.
func (k *coinIndex) available() chain.Amount {
	k.t.Helper()

	native, _ := k.network.Native()

	b, _, err := k.store.Balance(k.t.Context(), network, k.master().Address, native.ID)
	if err != nil {
		k.t.Fatal(err)
	}

	return b.Available()
}

// Pitfall 50. A block reward is no available balance, is not spent and holds no deposit until it is mature.
func TestBlockRewardMatures(t *testing.T) {
	const locked = 4

	k := newCoinIndex(t)
	master := k.master().Address

	reward := k.pays("reward", master)
	reward.Locked = locked
	k.take(follow.Batch{Blocks: []chain.Block{block(2, "a", []chain.Transfer{reward})}})

	payout := k.payout("SIM", coin(1))
	at := chain.Outpoint{TxHash: "reward"}

	for height := uint64(3); height <= 2+locked-1; height++ {
		k.wait(time.Minute)

		held, waiting, err := txmgr.CoinsOfPayments(
			t.Context(), k.store, network, []chain.Outpoint{at},
		)
		if err != nil || len(held) != 0 || !waiting[at] {
			t.Errorf("below height %d the reward is held %+v, waiting %v, %v", height, held, waiting, err)
		}

		if got := k.get(payout.ID); got.State != wallet.Queued || !k.available().IsZero() {
			t.Errorf(
				"below height %d the payout is %s, and %s are available",
				height,
				got.State,
				k.available(),
			)
		}

		k.take(follow.Batch{Blocks: []chain.Block{block(height, "a", nil)}})
	}

	if err := k.outbox.RefreshBalances(t.Context(), network, k.master()); err != nil {
		t.Fatal(err)
	}

	if k.available().IsZero() {
		t.Error("the mature reward is not available")
	}

	k.wait(10 * time.Minute)

	if got := k.get(payout.ID); got.State == wallet.Queued {
		t.Error("the mature reward is not spent")
	}
}
