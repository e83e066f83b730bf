package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/store"
)

// testSpentCoin spends a coin and takes the spending back.
func testSpentCoin(t *testing.T, st store.Store) {
	coin := wallet.Coin{
		Network: "net",
		Coin: chain.Coin{
			Outpoint: chain.Outpoint{TxHash: "a"},
			Owner:    chain.Party{Address: "w"},
			Amount:   chain.Units(5),
		},
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.PutCoin(ctx, &coin) })

	coin.SpentBy, coin.SpentAt = "b", 8

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.PutCoin(ctx, &coin) })

	got, err := st.Coins(t.Context(), "net", "w")
	if err != nil || len(got) != 0 {
		t.Fatalf("a spent coin is offered: %+v %v", got, err)
	}

	got, err = st.CoinsOf(t.Context(), "net", []string{"z", "a"})
	if err != nil || len(got) != 1 || got[0].SpentAt != 8 {
		t.Fatalf("the coins of the transaction that made it: %+v %v", got, err)
	}

	coin.SpentBy, coin.SpentAt = "", 0

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.PutCoin(ctx, &coin) })

	got, err = st.Coins(t.Context(), "net", "w")
	if err != nil || len(got) != 1 {
		t.Fatalf("a coin whose spending was undone is not offered: %+v %v", got, err)
	}
}

// testCoinHeights reads coins by the heights at which they were made and spent.
func testCoinHeights(t *testing.T, st store.Store) {
	ctx := t.Context()
	hashes := func(coins []wallet.Coin, err error) string {
		t.Helper()

		if err != nil {
			t.Fatal(err)
		}

		sorted := idsOf(coins, func(c wallet.Coin) string { return c.Outpoint.TxHash })
		slices.Sort(sorted)

		return strings.Join(sorted, " ")
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := putCoinsAtHeights(ctx, tx); err != nil {
			return err
		}

		if got := hashes(tx.WaitingCoins(ctx, "net")); got != "waiting" {
			t.Errorf("before the commit these wait: %s", got)
		}

		return nil
	})

	if got := hashes(st.WaitingCoins(ctx, "net")); got != "waiting" {
		t.Errorf("these wait: %s", got)
	}

	if got := hashes(st.CoinsAbove(ctx, "net", 7)); got != "both new spent" {
		t.Errorf("made or spent above 7: %s", got)
	}

	if got := hashes(st.CoinsAbove(ctx, "other", 0)); got != "" {
		t.Errorf("on another network: %s", got)
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		return tx.DeleteCoin(ctx, "net", chain.Outpoint{TxHash: "waiting"})
	})

	if got := hashes(st.CoinsOf(ctx, "net", []string{"waiting", "old"})); got != "old" {
		t.Errorf("after the deletion: %s", got)
	}
}

// putCoinsAtHeights puts coins that differ in the heights of their transactions.
func putCoinsAtHeights(ctx context.Context, tx store.Tx) error {
	for _, c := range []struct {
		hash            string
		height, spentAt uint64 // 0: in no block, not spent
	}{
		{"waiting", 0, 0},
		{"old", 5, 0},
		{"spent", 5, 9},
		{"new", 9, 0},
		{"both", 9, 9},
		{"early", 4, 7},
	} {
		coin := wallet.Coin{
			Network: "net",
			SpentAt: c.spentAt,
			Coin: chain.Coin{
				Outpoint: chain.Outpoint{TxHash: c.hash},
				Height:   c.height,
				Amount:   chain.Units(1),
			},
		}
		if c.spentAt > 0 {
			coin.SpentBy = "x"
		}

		if err := tx.PutCoin(ctx, &coin); err != nil {
			return err
		}
	}

	return nil
}
