//go:build unix

package tron_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// TestDriverOnTheFakeNode runs the suite with a token whose transfer returns false on success. The
// network has no daily allowance of bandwidth, since the suite wants every transaction to cost
// something; TestFreeBandwidth has one.
func TestDriverOnTheFakeNode(t *testing.T) {
	options := testenv.TronOptions{SolidLag: 4, Parameters: map[string]int64{"getFreeNetLimit": 0}}
	c := startChain(t, options)
	options.Genesis = "another network"
	other := startChain(t, options)
	conformance.TestDriver(t, func(t *testing.T) conformance.DriverHarness {
		return conformance.DriverHarness{
			Driver:  c.driver(t),
			Network: c,
			Signer:  freshSigner(t),
			Absent: []string{
				// not of an account network with logs
				"chain.AddressScanner",
				"chain.RequestURIBuilder",
				"chain.HeadNotifier", // its nodes have no subscriptions
				"chain.TipReader",
				"chain.TokenAccounter",
				"chain.Recoverer",
				"control.CoinLister",
				"chain.Bumper",
				"chain.FeeChecker",
				"chain.InputPricer",
				"chain.FitChecker",
				"control.CheapPayer",
				"control.VariablePayer", // its test node executes the same everywhere
				"control.NodeFaker",
				"control.HeaderUpgrader",
				"chain.Mempool", // a node hands its pool out one transaction at a time
				"chain.Nonces",
				"chain.DurableNonces",
				"chain.Batcher",               // one destination at a time
				"replacement of transactions", // and none displaces another
				"control.Pruner",              // only of blocks deep below the tip, see TestPrunedHeightStops
			},
			Unreachable: c.driver(
				t,
				func(c *tron.Config) { c.Nodes, c.Attempts = []tron.Node{{URL: "http://127.0.0.1:1"}}, 1 },
			),
			Misconfigured: c.driver(t, func(c *tron.Config) { c.Nodes = []tron.Node{{URL: other.URL}} }),
			BadAddresses: []string{
				"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6T",         // checksum
				"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6",          // too short
				"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6tt",        // too long
				"R7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6tT",         // turned round
				"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj0t",         // 0 is no base58 character
				"42a614f803b6fd780986a42c78ec9c7f77e6ded13c", // another prefix
				"0xa614f803b6fd780986a42c78ec9c7f77e6ded13c", // Ethereum's form
				"a614f803b6fd780986a42c78ec9c7f77e6ded13c",
				"1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", // Bitcoin's version byte
			},
			Spellings: map[string]chain.Address{
				"41a614f803b6fd780986a42c78ec9c7f77e6ded13c": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
				"41A614F803B6FD780986A42C78EC9C7F77E6DED13C": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
			},
			Patience: 20 * time.Second,
		}
	})
}
