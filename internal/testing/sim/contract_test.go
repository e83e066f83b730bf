package sim_test

import (
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// A transaction is executed anew by each block that includes it: what it does depends on the block.
func TestPayVariable(t *testing.T) {
	c := newChain(t)
	claimed, other, token := c.NewAddress(), c.NewAddress(), asset(t, c, "USDX").ID
	pay := func(to chain.Address, amount uint64) chain.Output {
		return chain.Output{To: to, AssetID: token, Amount: dollars(amount)}
	}
	branches := []struct {
		result  sim.Result
		indices []uint32
		balance uint64 // of the claimed receiver
	}{
		{sim.Result{Outputs: []chain.Output{pay(claimed, 100)}}, []uint32{1}, 100},
		{sim.Result{Outputs: []chain.Output{pay(claimed, 1)}}, []uint32{1}, 1},
		{sim.Result{Failed: true, Outputs: []chain.Output{pay(claimed, 100)}}, nil, 0},
		{sim.Result{Outputs: []chain.Output{pay(other, 100)}}, []uint32{1}, 0},
		{sim.Result{Outputs: []chain.Output{pay(other, 0), pay(claimed, 100)}}, []uint32{2}, 100},
		{sim.Result{}, nil, 0},
		{sim.Result{Outputs: []chain.Output{pay(other, 3), pay(claimed, 4)}}, []uint32{1, 2}, 4},
	}

	var heights []uint64

	hash := c.PayVariable(pay(claimed, 50), func(height, branch uint64) sim.Result {
		heights = append(heights, height)
		return branches[branch].result
	})
	if got := pooled(t, c); len(got) != 1 || got[0].TxHash != hash || got[0].Amount != dollars(50) ||
		got[0].To != claimed {
		t.Errorf("the pool shows %+v, want the claim", got)
	}

	c.Mine(1)

	for i, branch := range branches {
		if i > 0 {
			c.Fork(sim.Fork{Depth: c.Mine(1).Height, Length: 1, Fate: sim.Reinclude})
		}

		block := blockAt(t, c, 1)

		var indices []uint32
		for _, transfer := range block.Transfers {
			indices = append(indices, transfer.Index)
		}

		if !slices.Equal(indices, branch.indices) {
			t.Errorf("branch %d: transfers %+v, want indices %v", i, block.Transfers, branch.indices)
		}

		if s := block.Spent; len(s) != 1 || s[0].By != hash || s[0].Failed != branch.result.Failed {
			t.Errorf("branch %d: spent %+v", i, s)
		}

		if got := c.Balance(claimed, "USDX"); got != dollars(branch.balance) {
			t.Errorf("branch %d: balance %s, want %d dollars", i, got, branch.balance)
		}
	}

	if slices.ContainsFunc(heights, func(h uint64) bool { return h != 1 }) || len(heights) != len(branches) {
		t.Errorf("executed at heights %v", heights)
	}

	c.Fork(sim.Fork{Depth: 1})

	if got := pooled(t, c); len(got) != 1 || got[0].Amount != dollars(50) {
		t.Errorf("back in the pool it shows %+v, want the claim", got)
	}
}

// A contract that claims nothing and always reverts is a transaction of its block all the same.
func TestRevertingContract(t *testing.T) {
	c := newChain(t)

	hash := c.PayVariable(chain.Output{}, func(uint64, uint64) sim.Result { return sim.Result{Failed: true} })
	if got := pooled(t, c); len(got) != 0 {
		t.Errorf("the pool shows %+v", got)
	}

	c.Mine(1)

	found, err := c.Transaction(t.Context(), hash)
	if err != nil || !found.Failed || len(found.Transfers) != 0 {
		t.Errorf("found %+v, %v, want it failed", found, err)
	}

	if s := blockAt(t, c, 1).Spent; len(s) != 1 || !s[0].Failed {
		t.Errorf("spent %+v", s)
	}
}

// The rules of a token apply to the block that executes a payment, not to the one it was sent at.
func TestTokenRulesChangeBetweenBranches(t *testing.T) {
	c := newChain(t)
	to := c.NewAddress()
	c.Pay(to, "USDX", dollars(100))
	c.Mine(1)
	c.SetToken("USDX", sim.TokenRules{FeeBPS: 9_900})
	c.Fork(sim.Fork{Depth: 1, Fate: sim.Reinclude})

	if got := blockAt(t, c, 1).Transfers; len(got) != 2 || got[0].Amount != dollars(1) {
		t.Errorf("transfers %+v, want 1 dollar", got)
	}
}
