package ingest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// Blocks leaves the transfers of a disputed transaction unread: who signed it is all that blocks show of it.
func (c chainWithBadToken) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	blocks, err := c.Chain.Blocks(ctx, from, to)

	c.w.mu.Lock()
	disputed := c.w.disputed
	c.w.mu.Unlock()

	for i, block := range blocks {
		isDisputed := func(t chain.Transfer) bool { return t.TxHash == disputed }
		if !slices.ContainsFunc(block.Transfers, isDisputed) {
			continue
		}

		blocks[i].Transfers = slices.DeleteFunc(slices.Clone(block.Transfers), isDisputed)
		blocks[i].Unread = []chain.Unread{{Height: block.Height, TxHash: disputed, Why: "disputed"}}
	}

	return blocks, err
}

// A payment whose transaction a block holds, and of which the nodes say different things, is not taken for one that
// the block does not hold: it waits until it can be read.
func TestDisputedTransactionDropsNoPayment(t *testing.T) {
	w := newHarness(t, sim.Config{})
	inv := w.sell("USDX", dollars(100))
	hash := w.chain.Pay(addressOf(inv), "USDX", dollars(100))
	w.work()
	w.want(inv, invoice.Pending, chain.Amount{}, dollars(100))

	w.mu.Lock()
	w.disputed = hash
	w.mu.Unlock()

	w.mine(1)

	if p := w.only(inv.ID); p.Status != invoice.Detected || p.TxHash != hash {
		t.Errorf("while the nodes dispute its transaction the payment is %+v", p)
	}

	w.mu.Lock()
	w.disputed = ""
	w.mu.Unlock()

	w.mine(10)
	w.want(inv, invoice.Paid, dollars(100), chain.Amount{})

	if p := w.only(inv.ID); p.TxHash != hash || p.Status != invoice.Confirmed {
		t.Errorf("the payment is %+v", p)
	}
}
