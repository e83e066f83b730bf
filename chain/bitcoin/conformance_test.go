//go:build unix

package bitcoin_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// TestDriverOnARealNode runs the suite against bitcoind on regtest, with both kinds of address.
func TestDriverOnARealNode(t *testing.T) {
	t.Run("P2WPKH", func(t *testing.T) {
		n, endpoint := publishing(t)
		n.withCoins(t, 6)
		conformance.TestDriver(t, func(t *testing.T) conformance.DriverHarness {
			h := harness(t, n, freshSigner(t))
			cpfp := func(c *bitcoin.Config) { c.CPFPMaxFee = 100_000 }
			h.Driver = n.notified(t, endpoint, cpfp)
			h.Unreachable = n.notified(t, "tcp://127.0.0.1:1", cpfp, func(c *bitcoin.Config) {
				c.RPC = "http://127.0.0.1:1"
			})
			h.Absent = slices.DeleteFunc(slices.Clone(h.Absent), func(c string) bool {
				return c == "chain.HeadNotifier"
			})

			return h
		})
	})
	t.Run("P2TR", func(t *testing.T) {
		n := startNode(t, testenv.BitcoindOptions{}).withCoins(t, 6)
		conformance.TestDriver(t, func(t *testing.T) conformance.DriverHarness {
			return harness(
				t, n, freshSigner(t, hdkey.WithTaproot()),
				func(c *bitcoin.Config) { c.Taproot = true },
			)
		})
	})
}

func harness(
	t *testing.T,
	n *node,
	signer chain.Signer,
	change ...func(*bitcoin.Config),
) conformance.DriverHarness {
	change = slices.Clip(append(change, func(c *bitcoin.Config) { c.CPFPMaxFee = 100_000 }))
	unreachable := append(change, func(c *bitcoin.Config) { c.RPC = "http://127.0.0.1:1" })
	foreign := append(change, func(c *bitcoin.Config) { c.Network = bitcoin.Signet })

	return conformance.DriverHarness{
		Driver:        n.driver(t, change...),
		Network:       n,
		Signer:        signer,
		Absent:        absent,
		Unreachable:   n.driver(t, unreachable...),
		Misconfigured: n.driver(t, foreign...),
		BadAddresses:  badAddresses,
		Spellings: map[string]chain.Address{
			"BCRT1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KYGT080": "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
		},
		Patience: 30 * time.Second,
	}
}

// absent is what the network or its nodes do not have.
var absent = []string{
	// not of this network
	"chain.AddressScanner",
	"chain.TokenAccounter",
	"chain.Recoverer",
	"chain.StrayLister",
	"chain.Nonces",
	"chain.DurableNonces",
	"token assets",
	"chain.RequestURIBuilder",
	"chain.GasReader",
	"chain.FitChecker",
	"chain.HeadNotifier", // unless its node publishes them
	"chain.TipReader",    // it names no finality
	// a node keeps no balances of addresses; chain/send knows its coins
	"chain.Balancer",
	// no transaction fails in a block, no destination refuses
	"control.FailingPayer",
	"control.Freezer",
	"control.Expirer", // transactions do not run out
	// an output is what it says, and the header's proof of work holds what a block shows
	"control.VariablePayer",
	"control.HeaderUpgrader",
	"control.NodeFaker", // one node
	"control.Pruner",    // a node prunes hundreds of blocks at a time; see TestPrunedNodeStops
}
