//go:build unix

package solana_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/internal/testing/twonodes"
)

// One of two nodes that is dead, slow or behind: blocks are read, what confirms waits for two, as do the price and the
// rent of transactions, which no block proves, and the node is named.
func TestWhatOneOfTwoNodesStops(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, 10*sol, 1_000_000)

	known := newAddress(t)
	s.fund(chain.Party{Address: known}, sol, 1)

	for _, trouble := range []string{twonodes.Dead, twonodes.Slow, twonodes.Behind} {
		for i, place := range twonodes.Places {
			ill := newFaultyNode(t, n)
			urls := []string{n.URL, n.URL}
			urls[i] = ill.URL

			if trouble == twonodes.Behind {
				ill.set(frozenSlots(t, n))
				must(t, n.SolanaNode.Mine(2))
			}

			d := n.driver(t, func(c *solana.Config) {
				c.RPC, c.RPCs, c.Timeout = urls[0], urls[1:], 2*time.Second
				c.HTTPClient = &http.Client{Transport: twonodes.Transport{
					Host:    strings.TrimPrefix(ill.URL, "http://"),
					Trouble: trouble,
				}}
			})

			answers := twonodes.Of(t.Context(), d, chain.Order{
				From:    from,
				Outputs: []chain.Output{{To: known, AssetID: s.native().ID, Amount: chain.Units(1_000)}},
			})
			answers.Print(t, "solana", trouble, place)
			answers.Check(t, trouble, place, false)
		}
	}
}

// frozenSlots has a node repeat the slots that it has now.
func frozenSlots(t *testing.T, n *node) func(method string, params []any, result any) (any, int) {
	t.Helper()

	slots := map[string]uint64{}

	for _, commitment := range []string{"processed", "confirmed", "finalized"} {
		var slot uint64
		must(t, n.Call(&slot, "getSlot", map[string]string{"commitment": commitment}))
		slots[commitment] = slot
	}

	newest := slots["confirmed"]

	return func(method string, params []any, result any) (any, int) {
		switch method {
		case "getSlot":
			options, _ := params[0].(map[string]any)
			commitment, _ := options["commitment"].(string)

			return slots[commitment], 0
		case "getBlocks":
			all, _ := result.([]any)

			var until []any

			for _, slot := range all {
				if number, err := slot.(json.Number).Int64(); err == nil && uint64(number) <= newest {
					until = append(until, slot)
				}
			}

			return until, 0
		}

		return result, 0
	}
}
