package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// dueSpaces are the spaces of the addresses that testDueAddresses lists.
var dueSpaces = []chain.Space{{Family: chain.Solana}, {Family: chain.Solana, Livemode: true}}

// dueAddress returns address n: every third is never due, every other is urgent.
func dueAddress(n int) invoice.Address {
	address := invoice.Address{
		Space:   dueSpaces[n/12],
		Address: chain.Address(fmt.Sprintf("address%02d", n)),
		Network: []string{"a", "b"}[n/2%2],
		Urgent:  n%2 == 0,
	}
	if n%3 != 0 {
		address.NextCheck = timeAt(n * 5 % 24)
	}

	return address
}

// testDueAddresses lists addresses by when they are due and in the order of their text.
func testDueAddresses(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 24 {
			if err := tx.PutAddress(ctx, dueAddress(n)); err != nil {
				return err
			}
		}

		return nil
	})

	names := func(all []invoice.Address) string {
		return fmt.Sprint(idsOf(all, func(a invoice.Address) string { return string(a.Address)[7:] }))
	}

	for _, c := range []struct {
		urgent bool
		now    time.Time
		limit  int
		want   string
	}{
		{true, timeAt(12), 10, "[20 16]"},
		{true, timeAt(23), 10, "[20 16 08 04]"},
		{true, timeAt(23), 3, "[20 16 08]"},
		{true, timeAt(3), 10, "[]"},
		{false, timeAt(12), 10, "[05 01]"},
	} {
		got, err := st.DueAddresses(t.Context(), "a", c.urgent, c.now, c.limit)
		if names(got) != c.want || err != nil {
			t.Errorf(
				"due addresses (urgent %t, %s): %s, %v; want %s",
				c.urgent,
				c.now,
				names(got),
				err,
				c.want,
			)
		}
	}

	testMovedAddress(t, st, names)
	testAddressPages(t, st, names)
}

// testMovedAddress updates an address, which moves it to another place, and reads it in the transaction.
func testMovedAddress(t *testing.T, st store.Store, names func([]invoice.Address) string) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		first, second := dueAddress(8), dueAddress(4)
		first.Urgent, first.CheckedAt = false, timeAt(3)
		second.NextCheck = time.Time{}

		if err := tx.UpdateAddresses(ctx, first, second); err != nil {
			return err
		}

		got, err := tx.DueAddresses(ctx, "a", true, timeAt(23), 10)
		if names(got) != "[20 16]" {
			t.Errorf("after an update: %s", names(got))
		}

		return err
	})

	got, err := st.MatchAddresses(t.Context(), dueSpaces[0], []chain.Address{dueAddress(8).Address})
	if err != nil || len(got) != 1 || got[0].Urgent || !got[0].CheckedAt.Equal(timeAt(3)) {
		t.Errorf("the updated address is %+v, %v", got, err)
	}
}

// testAddressPages lists pages of every address of a space, whatever its network.
func testAddressPages(t *testing.T, st store.Store, names func([]invoice.Address) string) {
	page, err := st.AddressesAfter(t.Context(), dueSpaces[0], "", 7)
	if err != nil || names(page) != "[00 01 02 03 04 05 06]" {
		t.Errorf("the first page is %s, %v", names(page), err)
	}

	page, err = st.AddressesAfter(t.Context(), dueSpaces[0], "address06", 7)
	if err != nil || names(page) != "[07 08 09 10 11]" {
		t.Errorf("the last page is %s, %v", names(page), err)
	}
}

// dustTransfer returns transfer n, of two in a transaction.
func dustTransfer(n int) invoice.DustTransfer {
	return invoice.DustTransfer{
		Network: "net",
		TxHash:  fmt.Sprintf("hash%02d", n/2),
		TxIndex: uint32(n % 2),
		Address: []chain.Address{"a", "b"}[n/4%2],
		AssetID: "s",
		Amount:  chain.Units(uint64(n)),
		Block:   chain.Ref{Height: uint64(20 - n), Hash: "h"},
	}
}

// testDust lists transfers that are too small to be payments.
func testDust(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 16 {
			if err := tx.PutDustTransfer(ctx, dustTransfer(n)); err != nil {
				return err
			}
		}

		for _, d := range []invoice.Dust{
			{Network: "net", Address: "a", AssetID: "s", Count: 8},
			{Network: "net", Address: "a", AssetID: "u", Count: 1},
			{Network: "other", Address: "a", AssetID: "s", Count: 9},
		} {
			if err := tx.PutDust(ctx, &d); err != nil {
				return err
			}
		}

		return tx.DeleteDustTransfer(ctx, "net", invoicestate.DustKey(dustTransfer(1)))
	})

	heights := func(all []invoice.DustTransfer) string {
		out := make([]uint64, len(all))
		for i, d := range all {
			out[i] = d.Block.Height
		}

		return fmt.Sprint(out)
	}

	ctx := t.Context()

	at, err := st.DustTransfers(ctx, "net", "a", "s", 0)
	if err != nil || heights(at) != "[9 10 11 12 17 18 20]" {
		t.Errorf("the transfers to an address are in %s, %v", heights(at), err)
	}

	at, err = st.DustTransfers(ctx, "net", "a", "s", 3)
	if err != nil || heights(at) != "[9 10 11]" {
		t.Errorf("three transfers to an address are in %s, %v", heights(at), err)
	}

	above, err := st.DustAbove(ctx, "net", 17)
	if err != nil || heights(above) != "[18 20]" {
		t.Errorf("the transfers above a height are in %s, %v", heights(above), err)
	}

	byHash, err := st.DustByHash(ctx, "net", []string{"hash00", "hash07", "unknown"})
	if err != nil || len(byHash) != 3 {
		t.Errorf("the transfers by hash are %+v, %v", byHash, err)
	}

	sums, err := st.DustOf(ctx, "net", []chain.Address{"a", "b"})
	slices.SortFunc(sums, func(a, b invoice.Dust) int { return int(b.Count - a.Count) })

	if err != nil || len(sums) != 2 || sums[0].Count != 8 || sums[1].AssetID != "u" {
		t.Errorf("the sums are %+v, %v", sums, err)
	}
}
