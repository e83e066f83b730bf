package bitcoin

import (
	"time"

	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
)

// The networks of this package. CAIP2 holds the hash of the genesis block (namespace bip122). A caller may
// change any field of a copy except Family and CAIP2.
var (
	// Mainnet is Bitcoin. Payments from 10,000 USD on confirm after 6 blocks.
	Mainnet = chain.Network{
		Slug:                  "bitcoin",
		Family:                chain.Bitcoin,
		CAIP2:                 caip2(&chaincfg.MainNetParams),
		DisplayName:           "Bitcoin",
		NativeAsset:           "BTC",
		ExplorerTxURL:         "https://mempool.space/tx/{txHash}",
		ExplorerAddressURL:    "https://mempool.space/address/{address}",
		Rule:                  chain.RuleConfirmations,
		Confirmations:         3,
		Tiers:                 []chain.Tier{{FromUSD: decimal.NewFromInt(10_000), Confirmations: 6}},
		EstimatedConfirmation: 30 * time.Minute,
		BlockTime:             10 * time.Minute,
		Livemode:              true,
		Assets:                []chain.Asset{btc(10_000, 2_000)},
	}
	// Testnet4 is the public test network of BIP-94.
	Testnet4 = chain.Network{
		Slug:                  "bitcoin-testnet4",
		Family:                chain.Bitcoin,
		CAIP2:                 caip2(&chaincfg.TestNet4Params),
		DisplayName:           "Bitcoin Testnet4",
		NativeAsset:           "BTC",
		ExplorerTxURL:         "https://mempool.space/testnet4/tx/{txHash}",
		ExplorerAddressURL:    "https://mempool.space/testnet4/address/{address}",
		Rule:                  chain.RuleConfirmations,
		Confirmations:         3,
		EstimatedConfirmation: 30 * time.Minute,
		BlockTime:             10 * time.Minute,
		FaucetURL:             "https://mempool.space/testnet4/faucet",
		Assets:                []chain.Asset{btc(1_000, 600)},
	}
	// Signet is the default network of BIP-325, whose blocks are signed.
	Signet = chain.Network{
		Slug:                  "bitcoin-signet",
		Family:                chain.Bitcoin,
		CAIP2:                 caip2(&chaincfg.SigNetParams),
		DisplayName:           "Bitcoin Signet",
		NativeAsset:           "BTC",
		ExplorerTxURL:         "https://mempool.space/signet/tx/{txHash}",
		ExplorerAddressURL:    "https://mempool.space/signet/address/{address}",
		Rule:                  chain.RuleConfirmations,
		Confirmations:         3,
		EstimatedConfirmation: 30 * time.Minute,
		BlockTime:             10 * time.Minute,
		FaucetURL:             "https://signetfaucet.com",
		Assets:                []chain.Asset{btc(1_000, 600)},
	}
	// Regtest is a private chain whose blocks are mined on demand. Payments confirm after 2 blocks.
	Regtest = chain.Network{
		Slug:          "bitcoin-regtest",
		Family:        chain.Bitcoin,
		CAIP2:         caip2(&chaincfg.RegressionNetParams),
		DisplayName:   "Bitcoin Regtest",
		NativeAsset:   "BTC",
		Rule:          chain.RuleConfirmations,
		Confirmations: 2,
		BlockTime:     time.Second,
		Assets:        []chain.Asset{btc(1_000, 600)},
	}
)

// btc returns the native asset. least is the lowest payment in satoshi; it must exceed the dust limit of
// every kind of output. dust is the lowest output that pays for its own input: 2,000 satoshi do up to 29
// satoshi per virtual byte (68 virtual bytes).
func btc(least, dust uint64) chain.Asset {
	return chain.Asset{
		Symbol:    "BTC",
		Name:      "Bitcoin",
		Kind:      chain.Native,
		Decimals:  decimals,
		MinAmount: chain.Units(least),
		Dust:      chain.Units(dust),
	}
}

// caip2 returns the CAIP-2 name of a network: the first 16 bytes of its genesis block's hash. Source: CAIP-4.
func caip2(p *chaincfg.Params) string { return "bip122:" + p.GenesisHash.String()[:32] }

// paramsOf returns the address prefixes and the genesis block of a network; nil for an unknown one.
func paramsOf(network chain.Network) *chaincfg.Params {
	for _, p := range []*chaincfg.Params{
		&chaincfg.MainNetParams,
		&chaincfg.TestNet4Params,
		&chaincfg.SigNetParams,
		&chaincfg.RegressionNetParams,
	} {
		if caip2(p) == network.CAIP2 {
			return p
		}
	}

	return nil
}
