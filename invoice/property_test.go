package invoice_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// Rows 11 and 12 of the pitfalls. Whatever happens on the way (payments, forks with any fate,
// transactions that are dropped and replaced, crashes, a slow reader, a new process), in the end
// the records are those of the final chain alone: every transfer in it once and confirmed,
// everything else dropped, and the invoices as if only that had happened.
func TestOnlyTheFinalChainCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newHarness(t, account.Settings{ToleranceBPS: 50}, sim.Config{NoFinality: true})
		w.follow()

		ctx := context.Background()
		week := invoice.CreateParams{
			Price:     &invoice.Price{Currency: "EUR", Amount: "90"},
			Options:   []invoice.OptionParams{{Asset: "SIM", Network: "simnet"}},
			ExpiresIn: 7 * 24 * time.Hour,
		}

		var invoices []invoice.Invoice
		for range 2 {
			invoices = append(invoices, w.create(week))
		}

		c := w.chains[0]
		c.Mine(8)

		var hashes []string

		steps := map[string]func(*rapid.T){
			"pay": func(t *rapid.T) {
				inv := rapid.SampledFrom(invoices).Draw(t, "invoice")
				amount := rapid.SampledFrom([]string{
					"10000000000000000",
					"20000000000000000",
					"40000000000000000",
					due,
				}).
					Draw(t, "amount")
				hashes = append(hashes, w.pay(inv, amount))
			},
			"mine":   func(t *rapid.T) { w.mine(rapid.IntRange(1, 3).Draw(t, "blocks")) },
			"empty":  func(*rapid.T) { c.MineEmpty(1) },
			"follow": func(*rapid.T) { w.follow() },
			"fork": func(t *rapid.T) {
				f := sim.Fork{
					Depth: rapid.Uint64Range(1, 5).Draw(t, "depth"),
					Each:  map[string]sim.OrphanFate{},
				}

				fate := rapid.SampledFrom([]sim.OrphanFate{sim.ReturnToPool, sim.Reinclude, sim.DropOrphan})
				for _, hash := range hashes {
					f.Each[hash] = fate.Draw(t, "fate")
				}

				if tip, err := c.Head(ctx); err == nil && tip.Tip.Height > f.Depth+1 {
					c.Fork(f)
				}
			},
			"drop": func(t *rapid.T) {
				if len(hashes) > 0 {
					c.Drop(rapid.SampledFrom(hashes).Draw(t, "hash"))
				}
			},
			"restart": func(*rapid.T) { w.restart() },
			"crash": func(*rapid.T) {
				_ = w.store.Update(ctx, func(context.Context, store.Tx) error { return errors.New("crash") })
				w.restart()
			},
			"work": func(*rapid.T) { w.doDueWork() },
		}
		t.Repeat(steps)

		// The network comes to rest: all that still waits is mined, and a day passes.
		w.mine(3)
		w.follow()

		for range 3 {
			w.pass(25 * time.Hour)
			c.MineEmpty(1)
			w.follow()
			w.doDueWork()
		}

		w.checkAgainstChain(c, invoices)
	})
}

// checkAgainstChain reads the chain anew and expects nothing but that.
func (w *harness) checkAgainstChain(c *sim.Chain, invoices []invoice.Invoice) {
	w.t.Helper()

	head, err := c.Head(context.Background())
	w.must(err)

	for _, created := range invoices {
		address := created.Options[0].Address
		final := map[invoice.TransferKey]chain.Transfer{}
		in := map[invoice.TransferKey]chain.Ref{}

		for from := uint64(0); from <= head.Tip.Height; {
			blocks, err := c.Blocks(context.Background(), from, head.Tip.Height)
			w.must(err)

			for _, b := range blocks {
				for _, t := range b.Transfers {
					if t.To == address {
						key := invoice.TransferKey{TxHash: t.TxHash, Index: t.Index}
						final[key], in[key] = t, b.Ref
					}
				}

				from = b.Height + 1
			}
		}

		var counted []invoice.Payment

		for _, p := range w.paymentsOf(created.ID) {
			key := invoice.TransferKey{TxHash: p.TxHash, Index: p.TxIndex}

			t, there := final[key]
			switch {
			case !there && p.Status != invoice.Dropped:
				w.t.Errorf("payment %s (%s) is in no block and is %s", p.ID, p.TxHash, p.Status)
			case there && (p.Status != invoice.Confirmed || p.Block.Hash != in[key].Hash ||
				p.Amount != t.Amount || !p.USDValue.Valid):
				w.t.Errorf("payment %s is in block %d %s: %+v", p.ID, in[key].Height, in[key].Hash, p)
			}

			if there {
				counted = append(counted, p)
			}

			delete(final, key)
		}

		for key := range final {
			w.t.Errorf("transfer %s is in the chain and no payment", key.TxHash)
		}

		direct := created
		direct.Options = slices.Clone(created.Options)
		direct.Recompute(counted, w.clock())

		got := w.get(created.ID)
		if got.Status != direct.Status || !slices.Equal(got.Flags, direct.Flags) ||
			got.PaidOptionID != direct.PaidOptionID ||
			got.Options[0].AmountPaid != direct.Options[0].AmountPaid ||
			!got.Options[0].AmountDetected.IsZero() ||
			got.PaidAt.IsZero() != direct.PaidAt.IsZero() {
			w.t.Errorf(
				"the invoice is %s %v with %s, the chain alone makes it %s %v with %s",
				got.Status, got.Flags, got.Options[0].AmountPaid, direct.Status, direct.Flags,
				direct.Options[0].AmountPaid,
			)
		}
	}

	sequences := map[string]int64{}

	for _, e := range w.events {
		if !e.Type.Internal() {
			sequences[e.ObjectID]++
		}

		if e.Sequence != sequences[e.ObjectID] {
			w.t.Errorf(
				"event %s of %s has sequence %d, want %d",
				e.Type, e.ObjectID, e.Sequence, sequences[e.ObjectID],
			)
		}
	}
}

// Two processes that read the same network by mistake make one record of a transfer, and so does
// one that reads the same batch twice.
func TestSeenTwiceIsOnePayment(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	inv := w.sell()
	w.pay(inv, due)
	w.mine(1)

	ctx := context.Background()
	blocks, err := w.chains[0].Blocks(ctx, 1, 1)
	w.must(err)

	n := w.chains[0].Network()
	for range 2 {
		p, err := w.ingester.PrepareBatch(ctx, follow.Batch{Network: n, Blocks: blocks})
		w.must(err)
		w.must(w.update(ctx, func(ctx context.Context, tx *tx) error {
			return w.ingester.ApplyTx(ctx, tx, p, scan.Cursor{Network: n.Slug, At: blocks[0].Ref})
		}))
	}

	w.follow()
	w.onlyPayment(inv.ID)

	if got := w.published(inv.ID); got != "invoice.created invoice.payment_detected invoice.pending" {
		t.Errorf("published %q", got)
	}
}
