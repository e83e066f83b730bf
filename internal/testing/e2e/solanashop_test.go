//go:build unix

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// solanaShop is a service on a node with two tokens, and a payer beside it.
type solanaShop struct {
	*service
	p             *solanaPayer
	usdc, taxed   solanaToken
	slug          string
	master, feeTo chain.Address
}

func openSolanaShop(t *testing.T, open func(solana.Config) (payments.ChainDriver, error)) solanaShop {
	node := testenv.Solana(t, testenv.SolanaOptions{Finality: 8, BlockTime: 100 * time.Millisecond})
	eventually(t, "some blocks are final", func() (bool, string) {
		var height uint64
		if err := node.Call(&height, "getBlockHeight"); err != nil {
			t.Fatal(err)
		}

		return height > 2, fmt.Sprint(height)
	})
	p := newSolanaPayer(t, node)
	usdc := p.mint("USDC", "token", nil)
	taxed := p.mint("USDT", "token-2022", map[string]any{"bps": 100, "most": "1000000"})
	network := solana.Local(node.GenesisHash, usdc.asset, taxed.asset)
	network.BlockTime = 100 * time.Millisecond

	driver, err := open(
		solana.Config{
			Network:        network,
			RPC:            node.URL,
			Token2022:      []chain.Address{taxed.asset.Contract},
			CallsPerSecond: 10_000, // the node makes blocks faster than the network
		},
	)
	if err != nil {
		t.Fatal(err)
	}

	eventually(t, "the tokens are there", func() (bool, string) {
		err := driver.(chain.Checker).Check(t.Context())
		return err == nil, fmt.Sprint(err)
	})

	feeTo := p.freshAddress()
	s := start(t, driver, string(feeTo))

	master, err := internal.Of(s.engine).Transactions.MasterWallet(t.Context(), network.Slug, s.account.Index)
	if err != nil {
		t.Fatal(err)
	}
	// token deposits have their fees paid by the master wallet
	p.native(master.Address, chain.Units(5_000_000_000), "legacy")
	p.native(feeTo, chain.Units(10_000_000), "legacy")

	for address, coin := range map[chain.Address]chain.Amount{
		master.Address: chain.Units(5_000_000_000),
		feeTo:          chain.Units(10_000_000),
	} { // what follows compares what they hold
		eventually(t, "the wallets are funded", func() (bool, string) {
			held := p.balance(address)
			return held == coin, fmt.Sprintf("%s holds %s", address, held)
		})
	}

	return solanaShop{s, p, usdc, taxed, network.Slug, master.Address, feeTo}
}
