package bitcoin_test

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/internal/testing/twonodes"
)

// One of two nodes that is dead, slow, behind or on another fork: blocks are read and transactions priced, what
// confirms waits for two, and the node is named.
func TestWhatOneOfTwoNodesStops(t *testing.T) {
	common := makeChain(t, 3)
	long := extendChain(t, common, 10, 2_000)

	for _, trouble := range []string{twonodes.Dead, twonodes.Slow, twonodes.Behind, twonodes.Forked} {
		for i, place := range twonodes.Places {
			nodes := []*fakeNode{ratedNode(t, "0.00008", "0.00001"), ratedNode(t, "0.00008", "0.00001")}
			for _, node := range nodes {
				serveTip(t, node, long)
				node.on("getblockcount", func(params) any { return len(long) })
				node.on("gettxout", func(params) any {
					return map[string]any{
						"confirmations": 6,
						"value":         json.Number("1.00000000"),
						"scriptPubKey":  map[string]any{"hex": hex.EncodeToString(payeeScript())},
					}
				})
			}

			switch trouble {
			case twonodes.Behind:
				serveTip(t, nodes[i], long[:len(long)-2])
			case twonodes.Forked:
				serveTip(t, nodes[i], extendChain(t, common, 10, 3_000))
			}

			d := newDriver(t, nodes[0].config(), func(c *bitcoin.Config) {
				c.RPCs, c.Timeout = []string{nodes[1].URL}, 2*time.Second
				c.HTTPClient = &http.Client{Transport: twonodes.Transport{
					Host:    strings.TrimPrefix(nodes[i].URL, "http://"),
					Trouble: trouble,
				}}
			})

			order := chain.Order{
				From: chain.Party{Address: payee},
				Outputs: []chain.Output{
					{To: payee, AssetID: d.Network().Assets[0].ID, Amount: chain.Units(50_000)},
				},
				Coins: []chain.Coin{{
					Outpoint: chain.Outpoint{TxHash: strings.Repeat("1", 64)},
					Owner:    chain.Party{Address: payee},
					Amount:   chain.Units(100_000_000),
					Height:   1,
				}},
			}

			answers := twonodes.Of(t.Context(), d, order)
			answers.Print(t, "bitcoin", trouble, place)
			answers.Check(t, trouble, place, true)
		}
	}
}
