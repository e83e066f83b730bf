//go:build unix

package solana_test

import (
	"errors"
	"slices"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// deafHistory has a node's histories answered by a backend that is behind and does not heed minContextSlot: they lack
// the transactions with these hashes.
func (f *faultyNode) deafHistory(hashes ...string) {
	f.set(func(method string, _ []any, result any) (any, int) {
		if list, ok := result.([]any); ok && method == "getSignaturesForAddress" {
			return slices.DeleteFunc(list, func(entry any) bool {
				return slices.Contains(hashes, entry.(map[string]any)["signature"].(string))
			}), 0
		}

		return result, 0
	})
}

// TestEmptyHistoryProvesNoBalance reads the balance at an earlier block, and the history is of a backend that does not
// have the payment since: no payment that is in no block is made of it.
func TestEmptyHistoryProvesNoBalance(t *testing.T) {
	for _, c := range []struct {
		name      string
		before    uint64 // paid before
		forgotten bool   // the node has forgotten that
		want      error
	}{
		{name: "of a new account", want: fault.Unavailable},
		{name: "of an account with a balance", before: 5_000_000, want: fault.Unavailable},
		{name: "of an account whose history is forgotten", before: 5_000_000, forgotten: true, want: fault.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNode(t, solanago.TokenProgramID)
			deaf := newFaultyNode(t, n)
			d := n.driver(t, func(config *solana.Config) { config.RPC = deaf.URL })
			to := newAddress(t)

			if c.before > 0 {
				n.pay(t, to, nativeAsset, c.before)
			}

			must(t, n.SolanaNode.Mine(8))

			head, err := d.Head(t.Context())
			must(t, err)

			if c.forgotten {
				must(t, n.PruneRecords(head.Final.Height))
				must(t, n.Prune(head.Final.Height))
			}

			hash := n.pay(t, to, nativeAsset, 7_000_000)
			must(t, n.SolanaNode.Mine(2))

			holdings := []chain.Holding{{Address: to, AssetID: d.Network().Assets[0].ID}}

			deaf.deafHistory(hash)

			held, err := d.Balances(t.Context(), head.Tip, holdings)
			if !errors.Is(err, c.want) {
				t.Errorf("while the payment is not listed: %v, %v", held, err)
			}

			deaf.deafHistory()

			held, err = d.Balances(t.Context(), head.Tip, holdings)
			if err != nil || held[0] != chain.Units(c.before) {
				t.Errorf("once the payment is listed: %v, %v, want %d", held, err, c.before)
			}

			// A balance that was there at the block before needs no history.
			head, err = d.Head(t.Context())
			must(t, err)
			must(t, n.SolanaNode.Mine(3))
			deaf.deafHistory(hash)

			_, err = d.Balances(t.Context(), head.Tip, holdings)
			if c.forgotten && err != nil {
				t.Errorf("a balance that stays: %v", err)
			}
		})
	}
}
