package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

// testAccounts reads pages of accounts and what settings an account has that chose nothing.
func testAccounts(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 5 {
			if err := tx.PutAccount(ctx, &account.Account{ID: recordID(n), Index: uint32(n)}); err != nil {
				return err
			}
		}

		return nil
	})

	first, err := st.Accounts(t.Context(), "", 3)
	if err != nil || len(first) != 3 || first[0].ID != recordID(4) || first[2].ID != recordID(2) {
		t.Fatalf("the first page: %+v %v", first, err)
	}

	rest, err := st.Accounts(t.Context(), first[2].ID, 3)
	if err != nil || len(rest) != 2 || rest[1].ID != recordID(0) {
		t.Fatalf("the rest: %+v %v", rest, err)
	}

	for what, read := range map[string]func() error{
		"Account":            func() error { _, err := st.Account(t.Context(), "none"); return err },
		"InvoiceSettings":    func() error { _, err := st.InvoiceSettings(t.Context(), "none"); return err },
		"SettlementSettings": func() error { _, err := st.SettlementSettings(t.Context(), "none"); return err },
		"PayoutSettings":     func() error { _, err := st.PayoutSettings(t.Context(), "none"); return err },
	} {
		if err := read(); !errors.Is(err, fault.NotFound) {
			t.Errorf("%s of an unknown account answered %v", what, err)
		}
	}

	s, err := st.SettlementSettings(t.Context(), recordID(3))
	if err != nil || s.FeeBPS != 50 || !s.AutoRelease || s.Index != 3 {
		t.Errorf("the settlement settings of an account that chose nothing: %+v %v", s, err)
	}

	p, err := st.PayoutSettings(t.Context(), recordID(3))
	if err != nil || p.PerHour != 0 || p.Index != 3 {
		t.Errorf("the payout settings of an account that chose nothing: %+v %v", p, err)
	}
}

// testKeys reads the keys of an account, of both modes.
func testKeys(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 6 {
			key := account.Key{ID: recordID(n), Owner: owners[n%3], Hash: [32]byte{byte(n)}}
			if err := tx.PutKey(ctx, &key); err != nil {
				return err
			}
		}

		return nil
	})

	all, err := st.Keys(t.Context(), "one")
	if err != nil || len(all) != 4 || all[0].ID != recordID(4) || all[3].ID != recordID(0) {
		t.Errorf("the keys of an account, newest first, of both modes: %+v %v", all, err)
	}
}

// testBalances reads the balances of an owner and of a network.
func testBalances(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n, owner := range []event.Owner{
			owners[0],
			owners[1],
			owners[0],
			owners[0],
			owners[2],
		} {
			balance := wallet.Balance{
				Network: cycle(n*3, "b", "a"),
				Address: chain.Address(fmt.Sprint(n)),
				AssetID: fmt.Sprint("s", 9-n),
				Owner:   owner,
			}
			if err := tx.PutBalance(ctx, &balance); err != nil {
				return err
			}
		}

		return nil
	})

	got, err := st.Balances(t.Context(), owners[0])
	if err != nil || len(got) != 3 {
		t.Fatalf("the balances of an owner: %+v %v", got, err)
	}

	order := func(a, b wallet.Balance) int {
		return strings.Compare(a.Network+"\x00"+a.AssetID, b.Network+"\x00"+b.AssetID)
	}
	if !slices.IsSortedFunc(got, order) {
		t.Errorf("the balances of an owner are not in the order of network and asset: %+v", got)
	}

	onA, errA := st.BalancesOf(t.Context(), "a")
	onB, errB := st.BalancesOf(t.Context(), "b")
	isElsewhere := func(balance wallet.Balance) bool { return balance.Network != "a" }

	err = errors.Join(errA, errB)
	if err != nil || len(onA)+len(onB) != 5 || len(onA) == 0 || slices.ContainsFunc(onA, isElsewhere) {
		t.Errorf("the balances of networks: %+v %+v %v", onA, onB, err)
	}
}
