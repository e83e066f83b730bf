package storetest

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/store"
)

// Fields tests that every field of every record survives: put and read back in the same
// transaction, after it, and after it was replaced.
func Fields(t *testing.T, factory Factory) {
	t.Helper()

	cases := []testCase{
		{"Fields/Zero", testZeroFields},
		{"Fields/SpentCoin", testSpentCoin},
		{"Fields/CoinHeights", testCoinHeights},
		{"Fields/LargeNumbers", testLargeNumbers},
		{"Copies", testCopies},
	}

	for _, kind := range recordKinds() {
		cases = append(cases, testCase{
			"Fields/" + kind.name(),
			func(t *testing.T, st store.Store) { testFields(t, st, kind) },
		})
	}

	run(t, factory, cases)
}

// expectRead reads the record with want's key in a transaction of its own.
func expectRead(t *testing.T, st store.Store, kind recordKind, when string, want any) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		got, err := kind.get(ctx, tx, want)
		if err != nil {
			return err
		}

		expectEqual(t, when, want, got)

		return nil
	})
}

func testFields(t *testing.T, st store.Store, kind recordKind) {
	record, other := kind.new(0, 100), kind.new(1, 2000)

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for _, r := range []any{record, other} {
			if err := kind.put(ctx, tx, r); err != nil {
				return err
			}
		}

		got, err := kind.get(ctx, tx, record)
		if err != nil {
			return err
		}

		expectEqual(t, "in its transaction", record, got)

		return nil
	})

	if version := kind.version(record); version != nil && *version != 1 {
		t.Errorf("a new record has version %d in the caller's hands, want 1", *version)
	}

	expectRead(t, st, kind, "after the commit", record)

	// Several more, because a bool has only two values.
	for i := range 6 {
		seed := 5000 + 777*i
		if kind.version(record) != nil {
			record = kind.renew(record, 0, seed)
		} else {
			record = kind.new(2+i, seed)
		}

		update(t, st, func(ctx context.Context, tx store.Tx) error { return kind.put(ctx, tx, record) })
		expectRead(t, st, kind, "after it was replaced", record)
	}

	expectRead(t, st, kind, "beside another", other)
}

// testZeroFields stores records that have nothing but their key: zero times, no amounts, nil slices.
func testZeroFields(t *testing.T, st store.Store) {
	for _, kind := range recordKinds() {
		record := kind.bare()

		update(t, st, func(ctx context.Context, tx store.Tx) error { return kind.put(ctx, tx, record) })
		expectRead(t, st, kind, kind.name()+": after the commit", record)
	}
}

// testLargeNumbers stores numbers that need all bits of their type.
func testLargeNumbers(t *testing.T, st store.Store) {
	const maxUint64 = ^uint64(0)

	w := wallet.Wallet{
		Network:   "net",
		Party:     chain.Party{Address: "w", Key: chain.KeyRef{Family: "f", Role: "r", Index: ^uint32(0)}},
		NextNonce: maxUint64,
	}
	balance := wallet.Balance{
		Network:      "net",
		Address:      "w",
		AssetID:      "a",
		Reservations: []wallet.Reservation{{SpentAt: maxUint64}},
		At:           chain.Ref{Height: maxUint64, Hash: "h"},
	}
	balance.OnChain, _ = chain.AmountFromBytes([]byte(strings.Repeat("\xff", 32)))

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.PutWallet(ctx, &w); err != nil {
			return err
		}

		return tx.PutBalance(ctx, &balance)
	})

	gotWallet, _, err := st.Wallet(t.Context(), "net", "w")
	if err != nil {
		t.Fatal(err)
	}

	expectEqual(t, "wallet:", w, gotWallet)

	gotBalance, _, err := st.Balance(t.Context(), "net", "w", "a")
	if err != nil {
		t.Fatal(err)
	}

	expectEqual(t, "balance:", balance, gotBalance)
}

// testCopies changes every record after it was put and after it was read: the stored one stays.
func testCopies(t *testing.T, st store.Store) {
	for _, kind := range recordKinds() {
		put, want := kind.new(0, 300), kind.new(0, 300)
		readTwice := func(ctx context.Context, tx store.Tx, when string) error {
			for range 2 {
				got, err := kind.get(ctx, tx, want)
				if err != nil {
					return err
				}

				expectEqual(t, kind.name()+": "+when, want, got)
				overwriteShared(reflect.ValueOf(got).Elem())
			}

			return nil
		}

		update(t, st, func(ctx context.Context, tx store.Tx) error {
			if err := kind.put(ctx, tx, put); err != nil {
				return err
			}

			if version := kind.version(put); version != nil {
				*kind.version(want) = *version
			}

			overwriteShared(reflect.ValueOf(put).Elem())

			return readTwice(ctx, tx, "in its transaction")
		})
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			return readTwice(ctx, tx, "after the commit")
		})
	}
}

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

		sorted := idsOf(coins, func(coin wallet.Coin) string { return coin.Outpoint.TxHash })
		slices.Sort(sorted)

		return strings.Join(sorted, " ")
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := putCoinsAtHeights(ctx, tx); err != nil {
			return err
		}

		if got := hashes(tx.UnconfirmedCoins(ctx, "net")); got != "waiting" {
			t.Errorf("before the commit these wait: %s", got)
		}

		return nil
	})

	if got := hashes(st.UnconfirmedCoins(ctx, "net")); got != "waiting" {
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
