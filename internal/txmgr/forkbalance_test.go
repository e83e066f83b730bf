package txmgr_test

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// reserves reserves coins of the master wallet for a payout, once its balance was read.
func (w *harness) reserves(n chain.Network, amount chain.Amount) error {
	w.t.Helper()

	if err := w.outbox.RefreshBalances(w.t.Context(), network, w.master()); err != nil {
		w.t.Fatal(err)
	}

	native, _ := n.Native()

	return w.update(w.t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		return w.outbox.ReserveTx(ctx, tx, owner, network, w.master().Address, native.ID, "payout", amount)
	})
}

// A fork to a lower height takes what was paid to a wallet of an account network: what it held above is not promised
// until the old height is passed.
func TestForkToALowerHeightTakesTheBalanceOfAnAccount(t *testing.T) {
	w := newHarness(t, sim.Config{})

	before := w.chain.Mine(1)
	w.chain.Pay(w.master().Address, "SIM", coin(50))
	after := w.chain.Mine(2)
	w.read()

	if err := w.outbox.RefreshBalances(t.Context(), network, w.master()); err != nil {
		t.Fatal(err)
	}

	native, _ := w.chain.Network().Native()
	stored := func() wallet.Balance {
		b, _, err := w.store.Balance(t.Context(), network, w.master().Address, native.ID)
		if err != nil {
			t.Fatal(err)
		}

		return b
	}

	if b := stored(); b.OnChain != coin(150) || b.At != after {
		t.Fatalf("before the fork: %+v", b)
	}

	tip := w.chain.Fork(sim.Fork{Depth: after.Height - before.Height, Length: 1, Fate: sim.DropOrphan})
	w.read()

	if b := stored(); b.At.Hash != "" || b.At.Height != before.Height {
		t.Errorf("after the fork the balance is of block %+v, want only the height of %+v", b.At, before)
	}

	if err := w.reserves(w.chain.Network(), coin(120)); fault.Code(err) != "insufficient_balance" {
		t.Errorf("a payout of what the fork took: %v", err)
	}

	if b := stored(); b.OnChain != coin(100) || b.At != tip {
		t.Errorf("after the fork to block %d: %+v", tip.Height, b)
	}
}

// Where outputs are spent, the balance is the sum of the coins at whatever height the chain has.
func TestForkToALowerHeightTakesTheBalanceOfCoins(t *testing.T) {
	k := newCoinIndex(t)
	master := k.harness.master().Address

	k.take(follow.Batch{Blocks: []chain.Block{
		block(2, "a", []chain.Transfer{k.pays("m", master)}),
		block(3, "a", []chain.Transfer{k.pays("n", master)}),
		block(4, "a", nil),
	}})

	if err := k.outbox.RefreshBalances(t.Context(), network, k.harness.master()); err != nil {
		t.Fatal(err)
	}

	if got := k.available(); got != coin(10) {
		t.Fatalf("two coins come to %s", got)
	}

	k.take(follow.Batch{
		Rewound:    true,
		ForkedFrom: chain.Ref{Height: 2, Hash: "a2"},
		Blocks:     []chain.Block{block(3, "b", nil)},
	})

	if got := k.available(); got != coin(5) {
		t.Errorf("after a fork to block 3 the wallet has %s, want %s", got, coin(5))
	}

	if err := k.reserves(k.network, coin(7)); fault.Code(err) != "insufficient_balance" {
		t.Errorf("a payout of the coin that is gone: %v", err)
	}
}
