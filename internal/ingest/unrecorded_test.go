package ingest

import (
	"context"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// takesBack has a transaction take some of what it brought, as tokens do that log their fee.
func takesBack(row *wallet.Outgoing, fee uint64) {
	row.Transfers = append(row.Transfers[:1:1], chain.Transfer{
		TxHash:  "t",
		From:    "a",
		To:      "x",
		AssetID: row.Transfers[0].AssetID,
		Amount:  chain.Units(fee),
	})
}

// What a transaction that is not on record brought to an address is explained by it, until it turns out to be a
// payout or a settlement, or is credited as a payment.
func TestUnrecordedTransactionsExplainBalances(t *testing.T) {
	n := sim.DefaultNetwork()
	native, _ := n.Native()
	topUp := wallet.Outgoing{
		Network:    n.Slug,
		Key:        "w/1",
		Address:    "w",
		TxHash:     "t",
		Block:      chain.Ref{Height: 10},
		Unrecorded: true,
		Transfers: []chain.Transfer{
			{TxHash: "t", From: "w", To: "a", AssetID: native.ID, Amount: chain.Units(70)},
		},
	}
	spend := wallet.Outgoing{
		Network:      n.Slug,
		Key:          "a/0",
		Address:      "a",
		TxHash:       "s",
		Block:        chain.Ref{Height: 10},
		Unrecorded:   true,
		Fee:          chain.Units(5),
		Acknowledged: wallet.Foreign,
		Transfers: []chain.Transfer{
			{TxHash: "s", From: "a", To: "x", AssetID: native.ID, Amount: chain.Units(20)},
		},
	}

	for name, c := range map[string]struct {
		change func(topUp, spend *wallet.Outgoing)
		// brought and taken are base units; unclear is set while a person has to say what took some.
		brought, taken uint64
		unclear        bool
	}{
		"foreign":               {func(top, _ *wallet.Outgoing) { top.Acknowledged = wallet.Foreign }, 70, 25, false},
		"not acknowledged":      {func(_, _ *wallet.Outgoing) {}, 70, 25, false},
		"above the block":       {func(top, _ *wallet.Outgoing) { top.Block.Height = 11 }, 0, 25, false},
		"failed":                {func(top, _ *wallet.Outgoing) { top.Failed = true }, 0, 25, false},
		"recorded":              {func(top, _ *wallet.Outgoing) { top.Unrecorded = false }, 0, 25, false},
		"fulfilled a payout":    {func(top, _ *wallet.Outgoing) { top.Acknowledged = "p1" }, 0, 25, false},
		"credited":              {func(top, _ *wallet.Outgoing) { top.Acknowledged = "foreign,d1" }, 0, 25, false},
		"takes some of it back": {func(top, _ *wallet.Outgoing) { takesBack(top, 9) }, 61, 25, false},
		"credited, takes some back": {
			func(top, _ *wallet.Outgoing) {
				top.Acknowledged = "foreign,d1"
				takesBack(top, 9)
			},
			0,
			25,
			false,
		},
		"its spend unknown": {func(_, spend *wallet.Outgoing) { spend.Acknowledged = "" }, 70, 0, true},
		"its spend failed":  {func(_, spend *wallet.Outgoing) { spend.Failed = true }, 70, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			db, top, sent := memory.New(), topUp, spend
			c.change(&top, &sent)

			err := db.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
				for _, row := range []*wallet.Outgoing{&top, &sent} {
					if err := tx.PutOutgoing(ctx, row); err != nil {
						return err
					}
				}

				var payments []invoice.Payment
				if strings.HasPrefix(name, "credited") {
					payments = []invoice.Payment{{TxHash: "t", Address: "a", AssetID: native.ID}}
				}

				k := leftovers{
					brought: map[string]chain.Amount{},
					taken:   map[string]chain.Amount{},
					unclear: map[string]bool{},
				}
				err := k.addUnrecorded(ctx, tx, n, "a", payments, chain.Ref{Height: 10})

				brought, taken := k.brought[native.ID], k.taken[native.ID]
				if brought != chain.Units(c.brought) || taken != chain.Units(c.taken) {
					t.Errorf("brought %s, taken %s; want %d and %d", brought, taken, c.brought, c.taken)
				}

				if k.unclear[native.ID] != c.unclear {
					t.Errorf("what was taken is unclear: %t", k.unclear[native.ID])
				}

				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
