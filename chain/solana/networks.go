package solana

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// The networks, for Config.Network; a copy may be changed. Payments confirm when their block is
// finalized, after about 13 seconds. With RuleSafe they confirm by the votes of two thirds of the stake,
// within about two seconds.
//
// BlockTime of Mainnet is that since slots were shortened in 2026. Slower slots only mean that a number of blocks
// derived from it covers more time.
//
// MinAmount of SOL is above the rent minimum of an empty account, the least payment to a new address.
var (
	// Mainnet is Solana's main network.
	Mainnet = chain.Network{
		Slug:                  "solana",
		Family:                chain.Solana,
		CAIP2:                 "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
		DisplayName:           "Solana",
		NativeAsset:           "SOL",
		ExplorerTxURL:         "https://explorer.solana.com/tx/{txHash}",
		ExplorerAddressURL:    "https://explorer.solana.com/address/{address}",
		Rule:                  chain.RuleFinalized,
		Confirmations:         32,
		EstimatedConfirmation: 15 * time.Second,
		BlockTime:             210 * time.Millisecond,
		Livemode:              true,
		Assets: []chain.Asset{
			sol(),
			token("USDC", "USD Coin", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", 6, 100_000),
			token("USDT", "Tether USD", "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB", 6, 100_000),
		},
	}
	// Devnet is Solana's test network for applications.
	Devnet = chain.Network{
		Slug:                  "solana-devnet",
		Family:                chain.Solana,
		CAIP2:                 "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
		DisplayName:           "Solana Devnet",
		NativeAsset:           "SOL",
		ExplorerTxURL:         "https://explorer.solana.com/tx/{txHash}?cluster=devnet",
		ExplorerAddressURL:    "https://explorer.solana.com/address/{address}?cluster=devnet",
		Rule:                  chain.RuleFinalized,
		Confirmations:         32,
		EstimatedConfirmation: 15 * time.Second,
		BlockTime:             400 * time.Millisecond,
		FaucetURL:             "https://faucet.solana.com",
		Assets: []chain.Asset{
			sol(),
			token("USDC", "USD Coin", "4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU", 6, 10_000),
		},
	}
)

// Local returns the network of a development node by its genesis hash, with SOL and the given tokens.
func Local(genesisHash string, tokens ...chain.Asset) chain.Network {
	return chain.Network{
		Slug:          "solana-local",
		Family:        chain.Solana,
		CAIP2:         "solana:" + chainReference(genesisHash),
		DisplayName:   "Local Solana node",
		NativeAsset:   "SOL",
		Rule:          chain.RuleFinalized,
		Confirmations: 2,
		BlockTime:     400 * time.Millisecond,
		Assets:        append([]chain.Asset{sol()}, tokens...),
	}
}

// chainReference returns the CAIP-2 reference of a genesis hash: its first 32 characters. Source:
// namespaces.chainagnostic.org, solana.
func chainReference(genesisHash string) string {
	return genesisHash[:min(32, len(genesisHash))]
}

// dustBPS is the part of an asset's minimum amount, in basis points, that a transfer must reach to be a
// payment by itself.
const dustBPS = 100

func sol() chain.Asset {
	return chain.Asset{
		Symbol:    "SOL",
		Name:      "Solana",
		Kind:      chain.Native,
		Decimals:  9,
		MinAmount: chain.Units(1_000_000),
		Dust:      chaindata.BPS(chain.Units(1_000_000), dustBPS),
	}
}

// token returns an asset with its minimum amount in base units.
func token(symbol, name string, mint chain.Address, decimals uint8, minAmount uint64) chain.Asset {
	return chain.Asset{
		Symbol:    symbol,
		Name:      name,
		Kind:      chain.Token,
		Contract:  mint,
		Decimals:  decimals,
		MinAmount: chain.Units(minAmount),
		Dust:      chaindata.BPS(chain.Units(minAmount), dustBPS),
	}
}
