package storetest

// Every field of every record survives: put and read back in the same transaction, after it, and
// after it was replaced.

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/store"
)

// Fields tests that every field of every record survives.
func Fields(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, fieldTests())
}

func fieldTests() []testCase {
	tests := []testCase{
		{"Fields/Zero", testZeroFields},
		{"Fields/SpentCoin", testSpentCoin},
		{"Fields/CoinHeights", testCoinHeights},
		{"Fields/LargeNumbers", testLargeNumbers},
		{"Copies", testCopies},
	}
	for _, k := range recordKinds() {
		tests = append(
			tests,
			testCase{"Fields/" + k.name(), func(t *testing.T, st store.Store) { testFields(t, st, k) }},
		)
	}

	return tests
}

// expectEqual compares a record that was read with the one that was put.
func expectEqual(t testing.TB, when string, put, got any) {
	t.Helper()

	if diff := cmp.Diff(put, got, sameRecord); diff != "" {
		t.Errorf("%s the record is another (- put, + got):\n%s", when, diff)
	}

	eachTime(reflect.ValueOf(got), "", func(path string, at time.Time) {
		if !at.IsZero() && at.Location() != time.UTC {
			t.Errorf("%s %s is not in UTC: %v", when, path, at)
		}
	})
}

func testFields(t *testing.T, st store.Store, k recordKind) {
	record, other := k.new(0, 100), k.new(1, 2000)

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for _, r := range []any{record, other} {
			if err := k.put(ctx, tx, r); err != nil {
				return err
			}
		}

		got, err := k.get(ctx, tx, record)
		if err != nil {
			return err
		}

		expectEqual(t, "in its transaction", record, got)

		return nil
	})

	if v := k.version(record); v != nil && *v != 1 {
		t.Errorf("a new record has version %d in the caller's hands, want 1", *v)
	}

	read := func(when string, want any) {
		t.Helper()
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			got, err := k.get(ctx, tx, want)
			if err != nil {
				return err
			}

			expectEqual(t, when, want, got)

			return nil
		})
	}
	read("after the commit", record)
	// Several more, because a yes-or-no field has only two values to tell it from another by.
	for i := range 6 {
		seed := 5000 + 777*i
		if k.version(record) != nil {
			record = k.renew(record, 0, seed)
		} else {
			record = k.new(2+i, seed)
		}

		update(t, st, func(ctx context.Context, tx store.Tx) error { return k.put(ctx, tx, record) })
		read("after it was replaced", record)
	}

	read("beside another", other)
}

// testZeroFields stores records that have nothing but their key: zero times, no amounts, nil slices.
func testZeroFields(t *testing.T, st store.Store) {
	for _, k := range recordKinds() {
		record := k.bare()

		update(t, st, func(ctx context.Context, tx store.Tx) error { return k.put(ctx, tx, record) })
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			got, err := k.get(ctx, tx, record)
			if err != nil {
				return err
			}

			expectEqual(t, k.name()+": after the commit", record, got)

			return nil
		})
	}
}

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

	if got, err := st.Coins(t.Context(), "net", "w"); err != nil || len(got) != 0 {
		t.Fatalf("a spent coin is offered: %+v %v", got, err)
	}

	if got, err := st.CoinsOf(
		t.Context(), "net", []string{"z", "a"},
	); err != nil || len(got) != 1 ||
		got[0].SpentAt != 8 {
		t.Fatalf("the coins of the transaction that made it: %+v %v", got, err)
	}

	coin.SpentBy, coin.SpentAt = "", 0

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.PutCoin(ctx, &coin) })

	if got, err := st.Coins(t.Context(), "net", "w"); err != nil || len(got) != 1 {
		t.Fatalf("a coin whose spending was undone is not offered: %+v %v", got, err)
	}
}

// testCoinHeights finds coins by where they were made and spent.
func testCoinHeights(t *testing.T, st store.Store) {
	ctx := t.Context()
	hashes := func(coins []wallet.Coin, err error) string {
		t.Helper()

		if err != nil {
			t.Fatal(err)
		}

		var out []string
		for _, c := range coins {
			out = append(out, c.Outpoint.TxHash)
		}

		slices.Sort(out)

		return strings.Join(out, " ")
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for _, c := range []struct {
			hash           string
			height, spends uint64
		}{{"waiting", 0, 0}, {"old", 5, 0}, {"spent", 5, 9}, {"new", 9, 0}, {"both", 9, 9}, {"early", 4, 7}} {
			coin := wallet.Coin{
				Network: "net",
				SpentAt: c.spends,
				Coin: chain.Coin{
					Outpoint: chain.Outpoint{TxHash: c.hash},
					Height:   c.height,
					Amount:   chain.Units(1),
				},
			}
			if c.spends > 0 {
				coin.SpentBy = "x"
			}

			if err := tx.PutCoin(ctx, &coin); err != nil {
				return err
			}
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

// testLargeNumbers stores numbers that need all bits of their type.
func testLargeNumbers(t *testing.T, st store.Store) {
	const top = ^uint64(0)

	w := wallet.Wallet{
		Network:   "net",
		Party:     chain.Party{Address: "w", Key: chain.KeyRef{Family: "f", Role: "r", Index: ^uint32(0)}},
		NextNonce: top,
	}
	b := wallet.Balance{
		Network:      "net",
		Address:      "w",
		AssetID:      "a",
		Reservations: []wallet.Reservation{{SpentAt: top}},
		At:           chain.Ref{Height: top, Hash: "h"},
	}
	b.OnChain, _ = chain.AmountFromBytes(
		[]byte(
			"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" +
				"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		),
	)

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.PutWallet(ctx, &w); err != nil {
			return err
		}

		return tx.PutBalance(ctx, &b)
	})

	gotW, _, err := st.Wallet(t.Context(), "net", "w")
	if err != nil {
		t.Fatal(err)
	}

	expectEqual(t, "wallet:", w, gotW)

	gotB, _, err := st.Balance(t.Context(), "net", "w", "a")
	if err != nil {
		t.Fatal(err)
	}

	expectEqual(t, "balance:", b, gotB)
}

// testCopies changes every record after it was put and after it was read: the stored one stays.
func testCopies(t *testing.T, st store.Store) {
	for _, k := range recordKinds() {
		put, want := k.new(0, 300), k.new(0, 300)

		update(t, st, func(ctx context.Context, tx store.Tx) error {
			if err := k.put(ctx, tx, put); err != nil {
				return err
			}

			if v := k.version(put); v != nil {
				*k.version(want) = *v
			}

			overwriteShared(reflect.ValueOf(put).Elem())

			for range 2 {
				got, err := k.get(ctx, tx, want)
				if err != nil {
					return err
				}

				expectEqual(t, k.name()+": in its transaction", want, got)
				overwriteShared(reflect.ValueOf(got).Elem())
			}

			return nil
		})
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			for range 2 {
				got, err := k.get(ctx, tx, want)
				if err != nil {
					return err
				}

				expectEqual(t, k.name()+": after the commit", want, got)
				overwriteShared(reflect.ValueOf(got).Elem())
			}

			return nil
		})
	}
}

// overwriteShared changes everything that v shares with others: elements of slices and maps, and what
// pointers point to.
func overwriteShared(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			(&filler{n: 90000}).fill(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			overwriteShared(v.Index(i))
			(&filler{n: 90000}).fill(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				overwriteShared(v.Field(i))
			}
		}
	}
}
