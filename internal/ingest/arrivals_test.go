package ingest

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
)

// What one transaction takes out of an address did not arrive, whether its log stands before or behind.
func TestArrivalsAreNetOfTheirTransaction(t *testing.T) {
	type log struct {
		tx, from, to string
		amount       uint64
	}

	for name, c := range map[string]struct {
		logs []log
		want []uint64 // what arrived at our address, in order
	}{
		"taken back behind": {[]log{{"a", "payer", "ours", 150}, {"a", "ours", "payer", 50}}, []uint64{100}},
		"taken back before": {[]log{{"a", "ours", "payer", 50}, {"a", "payer", "ours", 150}}, []uint64{100}},
		"taken from the latest": {
			[]log{{"a", "x", "ours", 7}, {"a", "y", "ours", 9}, {"a", "ours", "z", 4}},
			[]uint64{7, 5},
		},
		"more than was there, then in": {
			[]log{{"a", "x", "ours", 7}, {"a", "ours", "z", 9}, {"a", "y", "ours", 5}},
			[]uint64{3},
		},
		"by another transaction": {[]log{{"a", "ours", "z", 50}, {"b", "payer", "ours", 150}}, []uint64{150}},
		"to itself":              {[]log{{"a", "ours", "ours", 50}}, nil},
	} {
		var transfers []chain.Transfer
		for _, l := range c.logs {
			transfers = append(transfers, chain.Transfer{
				TxHash:  l.tx,
				From:    chain.Address(l.from),
				To:      chain.Address(l.to),
				AssetID: "asset",
				Amount:  chain.Units(l.amount),
			})
		}

		var got []chain.Amount

		for _, arrived := range arrivals(transfers) {
			if arrived.To == "ours" {
				got = append(got, arrived.Amount)
			}
		}

		if len(got) != len(c.want) {
			t.Errorf("%s: %v arrived, want %v", name, got, c.want)
			continue
		}

		for i, want := range c.want {
			if got[i] != chain.Units(want) {
				t.Errorf("%s: %v arrived, want %v", name, got, c.want)
			}
		}
	}
}
