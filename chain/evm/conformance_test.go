//go:build unix

package evm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

// TestDriverOnARealNode runs the driver suite against anvil: with a token whose transfer returns
// nothing (as USDT), then with a standard ERC-20 and the network's own finality.
func TestDriverOnARealNode(t *testing.T) {
	t.Run("USDTLike", func(t *testing.T) {
		n := usdtNode(t)
		conformance.TestDriver(
			t,
			func(t *testing.T) conformance.DriverHarness { return harness(t, n, newControls(t, n)) },
		)
	})
	t.Run("ERC20", func(t *testing.T) {
		n := startNode(
			t, contracts.TestERC20, chain.Asset{Symbol: "TST", Kind: chain.Token, Decimals: 18},
			"Test", "TST", uint8(18),
		)
		conformance.TestDriver(t, func(t *testing.T) conformance.DriverHarness {
			h := harness(t, n, withoutFreezing{newControls(t, n)}, func(c *evm.Config) {
				c.Network.Rule, c.Pool = chain.RuleFinalized, evm.PoolContent
			})
			h.Absent = append(h.Absent, "control.Freezer") // a standard token cannot refuse a destination

			return h
		})
	})
}

// withoutFreezing hides Freeze.
type withoutFreezing struct{ forkingControls }

type forkingControls interface {
	control.Base
	control.Forker
	control.ZeroPayer
	control.FailingPayer
}

// notified returns a driver whose node announces its blocks.
func (n *node) notified(t *testing.T, change ...func(*evm.Config)) chain.Driver {
	t.Helper()

	c := n.config()
	c.WebSocket = "ws" + strings.TrimPrefix(c.RPC, "http")

	for _, apply := range change {
		apply(&c)
	}

	driver, err := evm.New(c)
	if err != nil {
		t.Fatal(err)
	}

	return driver
}

func harness(
	t *testing.T,
	n *node,
	controls control.Base,
	change ...func(*evm.Config),
) conformance.DriverHarness {
	return conformance.DriverHarness{
		Driver:  n.notified(t, change...),
		Network: controls,
		Signer:  freshSigner(t),
		Absent: []string{
			// not of an account network with logs
			"chain.RequestURIBuilder",
			"chain.AddressScanner",
			"chain.TokenAccounter",
			"chain.DurableNonces",
			"chain.Recoverer",
			"chain.StrayLister",
			"control.CoinLister",
			"chain.FeeChecker",
			"chain.InputPricer",
			"chain.Bumper",
			"control.CheapPayer",
			"chain.Batcher", // one destination at a time
			// its node lies in tests of its own, and a payment that differs from its claim in internal/testing/e2e
			"control.VariablePayer",
			"control.NodeFaker",
			"control.HeaderUpgrader",
			"control.Pruner", // anvil keeps everything; see TestPrunedHeightStops
		},
		Unreachable: n.notified(t, func(c *evm.Config) {
			c.RPC, c.WebSocket, c.Attempts = "http://127.0.0.1:1", "ws://127.0.0.1:1", 1
		}),
		Misconfigured: n.driver(t, func(c *evm.Config) { c.Network.ChainID++ }),
		BadAddresses: []string{
			"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1Beaed",  // checksum
			"5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",    // no prefix
			"0X5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",  // another prefix
			"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe",   // too short
			"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAedd", // too long
			"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg",
		},
		Spellings: map[string]chain.Address{
			"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
			"0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		},
		Patience: 30 * time.Second,
	}
}
