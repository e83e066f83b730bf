package sim_test

import (
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// Coin of contracts has the index of its log from LogCoin on, and a trace's before; the pool shows none of it then.
func TestCoinOfContractsLogs(t *testing.T) {
	c := newChain(t)
	to, native := c.NewAddress(), asset(t, c, "SIM").ID
	before := c.PayInternal(to, coin(1))

	c.Mine(1)
	c.LogCoin()

	plain, after := c.Pay(to, "SIM", coin(2)), c.PayInternal(to, coin(3))
	both := c.PayMany(
		chain.Output{To: to, AssetID: native, Amount: coin(4)},
		chain.Output{To: to, AssetID: asset(t, c, "USDX").ID, Amount: dollars(5)},
	)

	if found, err := c.Transaction(t.Context(), after); err != nil || len(found.Transfers) != 0 {
		t.Errorf("the pool shows %+v, %v", found, err)
	}

	c.Mine(1)

	for hash, indices := range map[string][]uint32{
		before: {1 << 20}, plain: {0}, after: {1}, both: {0, 2},
	} {
		found, err := c.Transaction(t.Context(), hash)
		if err != nil {
			t.Fatal(err)
		}

		var got []uint32
		for _, moved := range found.Transfers {
			got = append(got, moved.Index)
		}

		if !slices.Equal(got, indices) {
			t.Errorf("transaction %s has transfers %v, want %v", hash, got, indices)
		}
	}

	if shown := blockAt(t, c, 1).Transfers; len(shown) != 0 {
		t.Errorf("block 1 shows %+v", shown)
	}

	shown := blockAt(t, c, 2).Transfers
	if len(shown) != 4 || !slices.ContainsFunc(shown, func(m chain.Transfer) bool {
		return m.TxHash == after && m.Index == 1 && m.From != "" && m.To == to && m.Amount == coin(3)
	}) {
		t.Errorf("block 2 shows %+v", shown)
	}

	c.Fork(sim.Fork{Depth: 2, Fate: sim.Reinclude})
	c.Mine(1)

	if held := c.Balance(to, "SIM"); held != coin(10) {
		t.Errorf("%s is held after a fork", held)
	}
}
