//go:build unix

package solana_test

import (
	"context"
	"testing"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/conformance"
)

// TestDriverConformance runs the suite on a real node with a token of either program. One driver reads
// blocks, the other histories.
func TestDriverConformance(t *testing.T) {
	t.Run("Blocks", func(t *testing.T) {
		n := startNode(t, solanago.TokenProgramID)
		conformance.TestDriver(t, func(t *testing.T) conformance.DriverHarness {
			return harness(t, n, noncesOf{}, func(d *solana.BlockDriver) chain.Driver { return d })
		})
	})
	t.Run("Histories", func(t *testing.T) {
		n := startNode(t, solanago.Token2022ProgramID, withFee(0, 0))
		conformance.TestDriver(t, func(t *testing.T) conformance.DriverHarness {
			h := harness(t, n, noncesOf{}, func(d *solana.BlockDriver) chain.Driver { return d.Histories() })
			h.Absent = append(h.Absent, "chain.BlockScanner")

			return h
		})
	})
	t.Run("WithoutNonceAccounts", func(t *testing.T) {
		n := startNode(t, solanago.TokenProgramID)
		conformance.TestDriver(t, func(t *testing.T) conformance.DriverHarness {
			h := harness(t, n, nil, func(d *solana.BlockDriver) chain.Driver { return d.Histories() })
			h.Network = controls{n}
			h.Absent = append(h.Absent, "chain.BlockScanner", "control.NonceOpener")

			return h
		})
	})
}

// noncesOf are the nonce accounts of a configuration, which the suite opens after the driver was made.
type noncesOf map[chain.Address][]chain.Address

// nonceControls are the controls of a network with a driver that has nonce accounts.
type nonceControls struct {
	controls
	t      *testing.T
	nonces noncesOf
}

func (c nonceControls) OpenNonce(_ context.Context, owner chain.Address) (chain.Address, error) {
	account := c.openNonce(c.t, owner)
	c.nonces[owner] = append(c.nonces[owner], account)

	return account, nil
}

func harness(
	t *testing.T,
	n *node,
	nonces noncesOf,
	as func(*solana.BlockDriver) chain.Driver,
) conformance.DriverHarness {
	must(t, n.Prune(0)) // a test before may have pruned

	withNonces := func(c *solana.Config) { c.NonceAccounts = nonces }

	return conformance.DriverHarness{
		Driver:  as(n.driver(t, withNonces)),
		Network: nonceControls{controls{n}, t, nonces},
		Signer:  freshSigner(t),
		Absent: []string{
			// Solana has none that can be read
			"chain.Mempool",
			"chain.HeadNotifier", // its slots are as short as the pace of polling
			"chain.TipReader",
			// its test node executes the same everywhere
			"control.VariablePayer", "control.NodeFaker", "control.HeaderUpgrader",
			// nor account sequence numbers
			"chain.Nonces",
			"control.CoinLister", "chain.Bumper", "control.CheapPayer", // nor outputs
			"chain.FeeChecker", "chain.InputPricer", "chain.GasReader", "chain.FitChecker",
			"chain.Batcher",               // one destination at a time
			"replacement of transactions", // so nothing can be displaced: transactions run out instead
		},
		Unreachable:   as(n.driver(t, withNonces, func(c *solana.Config) { c.RPC = "http://127.0.0.1:1" })),
		Misconfigured: as(n.driver(t, func(c *solana.Config) { c.Network.CAIP2 = solana.Devnet.CAIP2 })),
		BadAddresses: []string{
			"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5D",   // too short
			"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DAA", // too long
			"0okenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",  // not base58
			"1TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", // 33 bytes
			" TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
		},
		Patience: 30 * time.Second,
	}
}
