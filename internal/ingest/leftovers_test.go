package ingest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// A payment has left its address once the sweep of its released settlement is in a block up to the one that
// is compared. Nothing is concluded while a transaction of ours touches the address, or is above that block.
func TestLeftoversAreThoseOfTheBlock(t *testing.T) {
	at := chain.Ref{Height: 10, Hash: "b", Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	sweptAt := []*wallet.Outgoing{outgoing("a", "s", 10)}
	sweptAbove := []*wallet.Outgoing{outgoing("a", "s", 11)}
	batchAbove := []*wallet.Outgoing{outgoing("w", "s", 11)}
	otherAbove := []*wallet.Outgoing{outgoing("a", "o", 11)}
	live := &wallet.Transaction{
		ID:       "t",
		Network:  "n",
		State:    wallet.Broadcast,
		Order:    chain.Order{From: chain.Party{Address: "a"}},
		Attempts: []wallet.Attempt{{Signed: chain.Signed{TxHash: "live"}}},
	}

	for name, c := range map[string]struct {
		status      settlement.Status
		releasedAt  time.Time
		rows        []*wallet.Outgoing
		transaction *wallet.Transaction
		known       bool
		moved       bool
	}{
		"waits":                       {status: settlement.Pending, known: true},
		"under way":                   {status: settlement.Releasing},
		"swept at the block":          {settlement.Released, at.Time, sweptAt, nil, true, true},
		"swept above the block":       {settlement.Released, at.Time, sweptAbove, nil, false, false},
		"swept by a batch above it":   {settlement.Released, at.Time, batchAbove, nil, false, false},
		"swept, its block not read":   {settlement.Released, at.Time, nil, nil, false, false},
		"swept long ago, no rows":     {settlement.Released, at.Time.Add(-time.Hour), nil, nil, true, true},
		"something left it above":     {status: settlement.Pending, rows: otherAbove},
		"something of ours is queued": {status: settlement.Pending, transaction: live},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, db := t.Context(), memory.New()

			err := db.Update(ctx, func(ctx context.Context, tx store.Tx) error {
				s := settlement.Settlement{
					ID:         "s1",
					Status:     c.status,
					PaymentID:  "p1",
					Network:    "n",
					ReleasedAt: c.releasedAt,
				}
				if c.status == settlement.Released {
					s.SweepTx = "s"
				}

				if err := tx.PutSettlements(ctx, &s); err != nil {
					return err
				}

				for _, r := range c.rows {
					if err := tx.PutOutgoing(ctx, r); err != nil {
						return err
					}
				}

				if c.transaction != nil {
					if err := tx.PutTransaction(ctx, c.transaction); err != nil {
						return err
					}
				}

				k, known, err := leftoversAt(
					ctx,
					tx,
					chain.Network{Slug: "n"},
					"a",
					[]invoice.Payment{{ID: "p1"}},
					at,
				)
				if known != c.known || k.moved["p1"] != c.moved && known {
					t.Errorf("known %t, moved %t; want %t and %t", known, k.moved["p1"], c.known, c.moved)
				}

				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// outgoing is the row of a transaction that an address made.
func outgoing(address chain.Address, hash string, height uint64) *wallet.Outgoing {
	return &wallet.Outgoing{
		Network: "n",
		Key:     hash,
		Address: address,
		TxHash:  hash,
		Block:   chain.Ref{Height: height, Hash: "x"},
	}
}

// What sweeps of a token took beyond their payments, and what they left, is in the residue of the address; a
// settlement whose payment is gone adds nothing to it.
func TestLeftoversOfTokensAreTheResidue(t *testing.T) {
	err := memory.New().Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		gone := settlement.Settlement{
			ID:        "s1",
			Status:    settlement.Failed,
			Reason:    settlement.PaymentOrphaned,
			PaymentID: "p1",
			Network:   "n",
			AssetID:   "usd",
			SweepID:   "r1",
			SweepTx:   "s",
		}
		row := settlement.Residue{
			Network: "n",
			Address: "a",
			Tokens: []settlement.TokenResidue{
				{AssetID: "usd", Owed: chain.Units(7)},
				{AssetID: "eur", Amount: chain.Units(5)},
			},
		}

		if err := errors.Join(
			tx.PutSettlements(
				ctx,
				&gone,
			),
			tx.PutOutgoing(ctx, outgoing("a", "s", 9)),
			tx.PutResidue(ctx, &row),
		); err != nil {
			return err
		}

		k, known, err := leftoversAt(
			ctx, tx, chain.Network{Slug: "n"}, "a", []invoice.Payment{{ID: "p1"}},
			chain.Ref{Height: 10, Hash: "b"},
		)
		if !known || k.taken["usd"] != chain.Units(7) || k.brought["eur"] != chain.Units(5) || k.moved["p1"] {
			t.Errorf("%+v, known %t", k, known)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a settlement did in releases that it has left is known: a sweep that never was, or failed, hides nothing that
// comes to its address later. Of native coin what it paid is gone, of a token that is in the residue.
func TestLeftoversOfASettlementThatLeftItsRelease(t *testing.T) {
	paid := chain.Units(3)
	coinAndToken := []chain.Asset{{ID: "coin", Kind: chain.Native}, {ID: "usd", Contract: "c"}}

	for name, c := range map[string]struct {
		s     settlement.Settlement
		left  bool // a block shows that something left the address
		known bool
		taken chain.Amount
	}{
		"never released": {
			settlement.Settlement{Status: settlement.Held, AssetID: "coin", FeeSource: settlement.FromDeposit},
			false,
			true,
			chain.Amount{},
		},
		"held after a sweep that never was": {
			settlement.Settlement{
				Status:      settlement.Held,
				AssetID:     "coin",
				FeeSource:   settlement.FromDeposit,
				SweepTx:     "s",
				NetworkFees: paid,
			},
			true,
			true,
			paid,
		},
		"failed in planning after its fee was paid": {
			settlement.Settlement{
				Status:    settlement.Failed,
				Reason:    settlement.NotReleasable,
				AssetID:   "coin",
				FeeSource: settlement.FromDeposit,
				FeeTx:     "f",
				SweepTx:   "s",
				FeePaid:   paid,
			},
			true,
			true,
			paid,
		},
		"no block shows what leaves": {
			settlement.Settlement{
				Status:    settlement.Held,
				AssetID:   "coin",
				FeeSource: settlement.FromDeposit,
				SweepTx:   "s",
			},
			false,
			false,
			chain.Amount{},
		},
		"a token, topped up": {
			settlement.Settlement{Status: settlement.Pending, AssetID: "usd", TopUpTx: "t", NetworkFees: paid},
			false,
			true,
			chain.Amount{},
		},
		"a token, after a sweep that failed": {
			settlement.Settlement{
				Status:  settlement.Held,
				Reason:  settlement.BelowSweepMin,
				AssetID: "usd",
				TopUpTx: "t",
				SweepTx: "s",
			},
			true,
			true,
			chain.Amount{},
		},
		"its payment is gone, and what it paid is owed": {
			settlement.Settlement{
				Status:    settlement.Failed,
				Reason:    settlement.PaymentOrphaned,
				AssetID:   "coin",
				FeeSource: settlement.FromDeposit,
				FeeTx:     "f",
				FeePaid:   paid,
			},
			true,
			true,
			chain.Amount{},
		},
		"its payment is gone": {
			settlement.Settlement{
				Status:    settlement.Failed,
				Reason:    settlement.PaymentOrphaned,
				AssetID:   "coin",
				FeeSource: settlement.FromDeposit,
				FeeTx:     "f",
				SweepTx:   "s",
			},
			true,
			false,
			chain.Amount{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.s.ID, c.s.PaymentID, c.s.Network = "s1", "p1", "n"

			err := memory.New().Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
				if err := tx.PutSettlements(ctx, &c.s); err != nil {
					return err
				}

				if c.left {
					if err := tx.PutOutgoing(ctx, outgoing("a", "x", 9)); err != nil {
						return err
					}
				}

				k, known, err := leftoversAt(
					ctx,
					tx,
					chain.Network{Slug: "n", Assets: coinAndToken},
					"a",
					[]invoice.Payment{{ID: "p1"}},
					chain.Ref{Height: 10, Hash: "b"},
				)
				if known != c.known || known && k.taken["coin"] != c.taken {
					t.Errorf("known %t, %s taken; want %t and %s", known, k.taken["coin"], c.known, c.taken)
				}

				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// What a sweep of a token sent and the master wallet did not get may have come back: it is no payment.
func TestWhatASweepGivesBackIsExplained(t *testing.T) {
	err := memory.New().Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		net := chain.Units(6)
		half := settlement.Settlement{
			ID:          "s1",
			Status:      settlement.Released,
			PaymentID:   "p1",
			Network:     "n",
			AssetID:     "usd",
			Gross:       chain.Units(10),
			NetReleased: &net,
			SweepTx:     "s",
		}

		if err := errors.Join(
			tx.PutSettlements(ctx, &half),
			tx.PutOutgoing(ctx, outgoing("a", "s", 9)),
		); err != nil {
			return err
		}

		k, known, err := leftoversAt(
			ctx, tx, chain.Network{Slug: "n"}, "a", []invoice.Payment{{ID: "p1"}},
			chain.Ref{Height: 10, Hash: "b"},
		)
		if !known || k.returned["usd"] != chain.Units(4) || !k.moved["p1"] {
			t.Errorf("%+v, known %t", k, known)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
