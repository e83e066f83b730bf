package tron

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// The networks of this package, with TRX and USDT. Change fields of a copy (Assets, Tiers) before
// it goes into Config.
//
// A payment confirms when its block is solidified: two thirds of the block producers have built on it, after
// 19 blocks. Confirmations, used with RuleConfirmations, is one block more.
//
// CAIP2 holds the last 4 bytes of the genesis block's id. Source: ChainAgnostic namespaces, tron/caip2.
var (
	// Mainnet is Tron's main network.
	Mainnet = chain.Network{
		Slug:                  "tron",
		Family:                chain.Tron,
		CAIP2:                 "tron:0x2b6653dc",
		DisplayName:           "Tron",
		NativeAsset:           "TRX",
		ExplorerTxURL:         "https://tronscan.org/#/transaction/{txHash}",
		ExplorerAddressURL:    "https://tronscan.org/#/address/{address}",
		Rule:                  chain.RuleFinalized,
		Confirmations:         20,
		EstimatedConfirmation: time.Minute,
		BlockTime:             3 * time.Second,
		Livemode:              true,
		Assets: []chain.Asset{
			trx("5000000"),
			token("USDT", "Tether USD", usdtMainnet, 6, "5000000"),
		},
	}
	// Nile is the test network for applications.
	Nile = chain.Network{
		Slug:                  "tron-nile",
		Family:                chain.Tron,
		CAIP2:                 "tron:0xcd8690dc",
		DisplayName:           "Tron Nile",
		NativeAsset:           "TRX",
		ExplorerTxURL:         "https://nile.tronscan.org/#/transaction/{txHash}",
		ExplorerAddressURL:    "https://nile.tronscan.org/#/address/{address}",
		Rule:                  chain.RuleFinalized,
		Confirmations:         20,
		EstimatedConfirmation: time.Minute,
		BlockTime:             3 * time.Second,
		FaucetURL:             "https://nileex.io/join/getJoinPage",
		Assets: []chain.Asset{
			trx("1000000"),
			token("USDT", "Tether USD", usdtNile, 6, "1000000"),
		},
	}
	// Shasta is the older test network.
	Shasta = chain.Network{
		Slug:                  "tron-shasta",
		Family:                chain.Tron,
		CAIP2:                 "tron:0x94a9059e",
		DisplayName:           "Tron Shasta",
		NativeAsset:           "TRX",
		ExplorerTxURL:         "https://shasta.tronscan.org/#/transaction/{txHash}",
		ExplorerAddressURL:    "https://shasta.tronscan.org/#/address/{address}",
		Rule:                  chain.RuleFinalized,
		Confirmations:         20,
		EstimatedConfirmation: time.Minute,
		BlockTime:             3 * time.Second,
		FaucetURL:             "https://shasta.tronex.io",
		Assets:                []chain.Asset{trx("1000000")},
	}
)

// Contracts of USDT. Source: Tether's list of supported protocols. Nile's is TetherToken in the TRON
// documentation, docs/api/http/smart-contract/getcontract.md.
const (
	usdtMainnet chain.Address = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
	usdtNile    chain.Address = "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf"
)

// Private returns a network for a private node: slug "tron-private", named by the id of its genesis block in
// hex.
func Private(genesisID string, tokens ...chain.Asset) chain.Network {
	reference := genesisID
	if len(reference) > 8 {
		reference = reference[len(reference)-8:]
	}

	return chain.Network{
		Slug:                  "tron-private",
		Family:                chain.Tron,
		CAIP2:                 "tron:0x" + reference,
		DisplayName:           "Tron private",
		NativeAsset:           "TRX",
		Rule:                  chain.RuleFinalized,
		Confirmations:         20,
		EstimatedConfirmation: time.Minute,
		BlockTime:             3 * time.Second,
		Assets:                append([]chain.Asset{trx("1000000")}, tokens...),
	}
}

// dustBPS is the part of an asset's least payment, in basis points, that a transfer must reach to be a payment
// by itself. Dust of less than a cent is a common advertisement here.
const dustBPS = 100

// trx returns the native asset with its least payment in sun.
func trx(least string) chain.Asset {
	return chain.Asset{
		Symbol:    "TRX",
		Name:      "TRON",
		Kind:      chain.Native,
		Decimals:  6,
		MinAmount: chain.MustAmount(least),
		Dust:      chaindata.BPS(chain.MustAmount(least), dustBPS),
	}
}

// token returns a token with its least payment in base units.
func token(symbol, name string, contract chain.Address, decimals uint8, least string) chain.Asset {
	return chain.Asset{
		Symbol:    symbol,
		Name:      name,
		Kind:      chain.Token,
		Contract:  contract,
		Decimals:  decimals,
		MinAmount: chain.MustAmount(least),
		Dust:      chaindata.BPS(chain.MustAmount(least), dustBPS),
	}
}
