package sim_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// A transaction of ours that one node denies: its word is not proof.
func TestStatusOfADeniedTransaction(t *testing.T) {
	c := sim.New(sim.Config{Clock: fixed})
	p := newWallet(t, c, 10)
	tx := p.sign(t, p.order(t, 0))
	broadcast(t, c, tx)
	c.SetNode(0, sim.NodeFaults{Denies: []string{tx.TxHash}})
	wantState(t, c, tx, chain.TxUnknown)

	if pool := pooled(t, c); len(pool) != 0 {
		t.Errorf("its pool shows %+v", pool)
	}

	_, err := c.Transaction(t.Context(), tx.TxHash)
	wantFault(t, err, fault.NotFound, "transaction_unknown")

	c.Mine(1)
	wantState(t, c, tx, chain.TxUnknown)

	if s := blockAt(t, c, 1).Spent; len(s) != 1 || s[0].By != tx.TxHash {
		t.Errorf("its block has %+v", s)
	}

	c.Mine(2)

	if st := wantState(t, c, tx, chain.TxDead); st.Reason != chain.ReasonConflict {
		t.Errorf("status %+v", st)
	}

	c.SetNode(0, sim.NodeFaults{EmptyReceipts: []string{tx.TxHash}})

	if st := wantState(t, c, tx, chain.TxIncluded); len(st.Transfers) != 0 || st.Reverted {
		t.Errorf("status %+v, want no transfers", st)
	}
}

// Of several nodes one that shows a transaction in a block is right against one that denies it.
func TestStatusOfATransactionThatOneNodeDenies(t *testing.T) {
	c := sim.New(sim.Config{Clock: fixed, Nodes: 2})
	p := newWallet(t, c, 10)
	tx := p.sign(t, p.order(t, 0))
	broadcast(t, c, tx)
	c.SetNode(0, sim.NodeFaults{Denies: []string{tx.TxHash}})
	wantState(t, c, tx, chain.TxUnknown)

	c.Mine(3)

	if st := wantState(t, c, tx, chain.TxIncluded); len(st.Transfers) != 1 {
		t.Errorf("status %+v, want a transfer", st)
	}
}

// Blocks ends before a block that cannot be right; the next call begins with it.
func TestBlocksEndBeforeAContradiction(t *testing.T) {
	p := newPayment(t, sim.Config{})
	p.c.SetNode(0, sim.NodeFaults{DropsLogs: []string{p.hash}})

	if blocks, err := p.c.Blocks(t.Context(), 0, 5); err != nil || len(blocks) != 2 {
		t.Errorf("blocks %+v, %v, want 0 and 1", blocks, err)
	}

	_, err := p.c.Blocks(t.Context(), 2, 5)
	wantFault(t, err, fault.Unavailable, "node_unavailable")
}

// Coin leaves no log that a node could drop.
func TestCoinHasNoLogToDrop(t *testing.T) {
	c := newChain(t)
	hash := c.Pay(c.NewAddress(), "SIM", coin(1))
	c.Mine(1)
	c.SetNode(0, sim.NodeFaults{DropsLogs: []string{hash}, DropsBloom: true})

	if got := blockAt(t, c, 1).Transfers; len(got) != 1 {
		t.Errorf("transfers %+v, want the coin", got)
	}
}
