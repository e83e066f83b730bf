package chain_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/chain/tron"
)

// Every asset of the catalogues says from when on a transfer is a payment by itself: at most from the least
// amount that an invoice asks for.
func TestDustOfTheCatalogues(t *testing.T) {
	for _, n := range []chain.Network{
		evm.Ethereum, evm.Sepolia, evm.Base, evm.BaseSepolia, evm.Optimism, evm.OPSepolia, evm.Arbitrum,
		evm.ArbitrumSepolia, evm.Polygon, evm.PolygonAmoy, evm.BNB, evm.BNBTestnet,
		bitcoin.Mainnet, bitcoin.Signet, bitcoin.Regtest,
		solana.Mainnet, solana.Devnet,
		tron.Mainnet, tron.Nile, tron.Shasta,
	} {
		for _, asset := range n.Assets {
			if asset.Dust.IsZero() || asset.MinAmount.Less(asset.Dust) {
				t.Errorf(
					"dust of %s on %s is %s, min_amount %s",
					asset.Symbol,
					n.Slug,
					asset.Dust,
					asset.MinAmount,
				)
			}
		}
	}

	n := chain.Network{Slug: "n", CAIP2: "n:1"}.With(
		chain.Asset{Symbol: "A", Kind: chain.Native, MinAmount: chain.Units(5), Dust: chain.Units(9)},
	)
	if got := n.Assets[0].Dust; got != chain.Units(5) {
		t.Errorf("dust above min_amount is %s, want 5", got)
	}
}
