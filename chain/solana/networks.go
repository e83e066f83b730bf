package solana

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// The catalogue: networks as chain.Network values. Change a copy to taste before it goes into
// Config. Payments confirm when the network calls their block finalized, some 13 seconds; nothing
// final was ever undone. RuleSafe confirms with the vote of two thirds of the stake, within a
// second or two.
//
// The least amount of SOL is above the rent minimum of an empty account, below which nobody can pay
// to a new address.
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
		BlockTime:             400 * time.Millisecond,
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

// Local describes a development node by its genesis hash, with SOL and the given tokens.
func Local(genesisHash string, tokens ...chain.Asset) chain.Network {
	return chain.Network{
		Slug:          "solana-local",
		Family:        chain.Solana,
		CAIP2:         "solana:" + reference(genesisHash),
		DisplayName:   "Local Solana node",
		NativeAsset:   "SOL",
		Rule:          chain.RuleFinalized,
		Confirmations: 2,
		BlockTime:     400 * time.Millisecond,
		Assets:        append([]chain.Asset{sol()}, tokens...),
	}
}

// reference is what CAIP-2 takes of a genesis hash: its first 32 characters. Source:
// namespaces.chainagnostic.org, solana.
func reference(genesisHash string) string {
	return genesisHash[:min(32, len(genesisHash))]
}

func sol() chain.Asset {
	return chain.Asset{
		Symbol:    "SOL",
		Name:      "Solana",
		Kind:      chain.Native,
		Decimals:  9,
		MinAmount: chain.Units(1_000_000),
	}
}

func token(symbol, name string, mint chain.Address, decimals uint8, least uint64) chain.Asset {
	return chain.Asset{
		Symbol:    symbol,
		Name:      name,
		Kind:      chain.Token,
		Contract:  mint,
		Decimals:  decimals,
		MinAmount: chain.Units(least),
	}
}
