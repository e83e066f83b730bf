package storetest

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/store"
)

// testOutgoingByHeight reads what blocks at, above and below a height took from addresses.
func testOutgoingByHeight(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for _, o := range []struct {
			network, key string
			address      chain.Address
			height       uint64
		}{
			{"a", "k9", "x", 5},
			{"a", "k2", "x", 6},
			{"a", "k1", "x", 6},
			{"a", "k0", "x", 7},
			{"a", "k5", "y", 6},
			{"a", "k6", "y", 7},
			{"b", "k7", "x", 7},
		} {
			row := wallet.Outgoing{
				Network: o.network,
				Key:     o.key,
				Address: o.address,
				Block:   chain.Ref{Height: o.height, Hash: "h", Time: timeAt(int(o.height))},
			}
			if err := tx.PutOutgoing(ctx, &row); err != nil {
				return err
			}
		}

		return nil
	})

	key := func(o wallet.Outgoing) string { return o.Key }

	for _, c := range []struct {
		what  string
		from  uint64
		limit int
		want  []string
	}{
		{"OutgoingOf all blocks", 0, 0, []string{"k9", "k1", "k2", "k0"}},
		{"OutgoingOf the lowest block on", 5, 0, []string{"k9", "k1", "k2", "k0"}},
		{"OutgoingOf a later block on", 6, 0, []string{"k1", "k2", "k0"}},
		{"OutgoingOf a later block on, limit 1", 6, 1, []string{"k1"}},
		{"OutgoingOf the highest block on", 7, 0, []string{"k0"}},
		{"OutgoingOf above all blocks", 8, 0, nil},
	} {
		found, err := st.OutgoingOf(t.Context(), "a", "x", c.from, c.limit)
		expectIDs(t, c.what, found, err, key, c.want, false)
	}

	for height, want := range map[uint64][]string{
		4: {"k0", "k1", "k2", "k5", "k6", "k9"},
		5: {"k0", "k1", "k2", "k5", "k6"},
		6: {"k0", "k6"},
		7: nil,
	} {
		found, err := st.OutgoingAbove(t.Context(), "a", height)
		expectIDs(t, "OutgoingAbove", found, err, key, want, true)
	}
}
