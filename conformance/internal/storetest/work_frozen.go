package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/store"
)

// testFrozenWallets reads the frozen wallets of a network, by address and within the limit.
func testFrozenWallets(t *testing.T, st store.Store) {
	frozen := wallet.Wallet{Network: "a", Party: chain.Party{Address: chain.Address(recordID(3))}}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 12 {
			w := wallet.Wallet{
				Network: []string{"a", "b"}[n%2],
				Party:   chain.Party{Address: chain.Address(recordID(n))},
			}
			if n%3 == 0 {
				walletstate.Freeze(&w, wallet.FrozenUnrecorded, recordID(n), timeAt(n))
			}

			if err := tx.PutWallet(ctx, &w); err != nil {
				return err
			}

			if n == 6 {
				frozen = w
			}
		}

		return nil
	})

	expectFrozen(t, st, "frozen wallets", "a", 5, recordID(0), recordID(6))
	expectFrozen(t, st, "the first frozen wallet", "b", 1, recordID(3))

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		walletstate.Unfreeze(&frozen)

		return tx.PutWallet(ctx, &frozen)
	})

	expectFrozen(t, st, "frozen wallets after one was unfrozen", "a", 5, recordID(0))
}

func expectFrozen(
	t *testing.T,
	st store.Store,
	what, network string,
	limit int,
	want ...string,
) {
	t.Helper()

	found, err := st.FrozenWallets(t.Context(), network, limit)
	expectIDs(
		t,
		what,
		found,
		err,
		func(w wallet.Wallet) string { return string(w.Party.Address) },
		want,
		false,
	)
}

// testUnrecordedOutgoing reads the transactions that are not on record: those that nobody has acknowledged, and
// those since a time.
func testUnrecordedOutgoing(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 12 {
			o := wallet.Outgoing{
				Network:    "a",
				Key:        recordID(n),
				Address:    chain.Address(recordID(n % 2)),
				Block:      chain.Ref{Height: uint64(20 - n), Hash: "h", Time: timeAt(20 - n)},
				Unrecorded: n%3 == 0,
			}
			if n >= 6 {
				o.Acknowledged = wallet.Foreign
			}

			if err := tx.PutOutgoing(ctx, &o); err != nil {
				return err
			}
		}

		return nil
	})

	for _, c := range []struct {
		what    string
		network string
		address chain.Address
		since   time.Time
		want    []string
	}{
		{"all", "a", "", time.Time{}, []string{recordID(9), recordID(6), recordID(3), recordID(0)}},
		{"since a time", "a", "", timeAt(14), []string{recordID(6), recordID(3), recordID(0)}},
		{"open ones", "a", "", timeAt(15), []string{recordID(3), recordID(0)}},
		{"of an address", "a", chain.Address(recordID(1)), timeAt(0), []string{recordID(9), recordID(3)}},
		{"of another network", "b", "", time.Time{}, nil},
	} {
		found, err := st.UnrecordedOutgoing(t.Context(), c.network, c.address, c.since)
		expectIDs(t, c.what, found, err, func(o wallet.Outgoing) string { return o.Key }, c.want, false)
	}
}
