package evm

import (
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// The catalogue of networks, each with its native coin and the stablecoins whose contracts are certain. A
// copy may be changed (drop assets, raise Confirmations, set Tiers) before it goes into Config. MinAmount is
// in base units.
//
// Ethereum and its rollups confirm at their own "safe" tag, within minutes. A two-thirds vote on Ethereum has
// justified that block, for a rollup after its publication there. Only a slashable fault undoes it.
//
// Polygon and BNB Smart Chain finalise within seconds and confirm at "finalized". Confirmations, the depth
// used without these tags, exceeds any reorg known on the network (Polygon had one of 157 blocks). Fallback
// is that depth as a time, at the network's pace when the depth was chosen: blocks that come faster confirm
// no sooner. BlockTime is the pace of November 2026.
var (
	// Ethereum is Ethereum's main network.
	Ethereum = chain.Network{
		Slug:                  "ethereum",
		Family:                chain.EVM,
		ChainID:               1,
		CAIP2:                 "eip155:1",
		DisplayName:           "Ethereum",
		NativeAsset:           "ETH",
		ExplorerTxURL:         "https://etherscan.io/tx/{txHash}",
		ExplorerAddressURL:    "https://etherscan.io/address/{address}",
		Rule:                  chain.RuleSafe,
		Confirmations:         64,
		Fallback:              13 * time.Minute,
		EstimatedConfirmation: 8 * time.Minute,
		BlockTime:             12 * time.Second,
		Livemode:              true,
		Assets: []chain.Asset{
			etherAsset("500000000000000"),
			tokenAsset("USDC", "USD Coin", usdcEthereum, 6, "1000000"),
			tokenAsset("USDT", "Tether USD", usdtEthereum, 6, "1000000"),
			tokenAsset("DAI", "Dai Stablecoin", daiEthereum, 18, "1000000000000000000"),
		},
	}
	// Sepolia is Ethereum's test network for applications.
	Sepolia = chain.Network{
		Slug:                  "sepolia",
		Family:                chain.EVM,
		ChainID:               11155111,
		CAIP2:                 "eip155:11155111",
		DisplayName:           "Sepolia",
		NativeAsset:           "ETH",
		ExplorerTxURL:         "https://sepolia.etherscan.io/tx/{txHash}",
		ExplorerAddressURL:    "https://sepolia.etherscan.io/address/{address}",
		Rule:                  chain.RuleSafe,
		Confirmations:         64,
		Fallback:              13 * time.Minute,
		EstimatedConfirmation: 8 * time.Minute,
		BlockTime:             12 * time.Second,
		FaucetURL:             "https://sepolia-faucet.pk910.de",
		Assets: []chain.Asset{
			etherAsset("1000000000000"),
			tokenAsset("USDC", "USD Coin", usdcSepolia, 6, "10000"),
		},
	}
	// Base is the OP-stack rollup of that name.
	Base = chain.Network{
		Slug:                  "base",
		Family:                chain.EVM,
		ChainID:               8453,
		CAIP2:                 "eip155:8453",
		DisplayName:           "Base",
		NativeAsset:           "ETH",
		ExplorerTxURL:         "https://basescan.org/tx/{txHash}",
		ExplorerAddressURL:    "https://basescan.org/address/{address}",
		Rule:                  chain.RuleSafe,
		Confirmations:         300,
		Fallback:              10 * time.Minute,
		EstimatedConfirmation: 5 * time.Minute,
		BlockTime:             200 * time.Millisecond,
		Livemode:              true,
		Assets: []chain.Asset{
			etherAsset("50000000000000"),
			tokenAsset("USDC", "USD Coin", usdcBase, 6, "100000"),
			tokenAsset("DAI", "Dai Stablecoin", daiBase, 18, "100000000000000000"),
		},
	}
	// BaseSepolia is Base's test network.
	BaseSepolia = chain.Network{
		Slug:                  "base-sepolia",
		Family:                chain.EVM,
		ChainID:               84532,
		CAIP2:                 "eip155:84532",
		DisplayName:           "Base Sepolia",
		NativeAsset:           "ETH",
		ExplorerTxURL:         "https://sepolia.basescan.org/tx/{txHash}",
		ExplorerAddressURL:    "https://sepolia.basescan.org/address/{address}",
		Rule:                  chain.RuleSafe,
		Confirmations:         300,
		Fallback:              10 * time.Minute,
		EstimatedConfirmation: 5 * time.Minute,
		BlockTime:             200 * time.Millisecond,
		FaucetURL:             "https://portal.cdp.coinbase.com/products/faucet",
		Assets: []chain.Asset{
			etherAsset("1000000000000"),
			tokenAsset("USDC", "USD Coin", usdcBaseSepolia, 6, "10000"),
		},
	}
	// Optimism is OP Mainnet.
	Optimism = chain.Network{
		Slug:                  "optimism",
		Family:                chain.EVM,
		ChainID:               10,
		CAIP2:                 "eip155:10",
		DisplayName:           "OP Mainnet",
		NativeAsset:           "ETH",
		ExplorerTxURL:         "https://optimistic.etherscan.io/tx/{txHash}",
		ExplorerAddressURL:    "https://optimistic.etherscan.io/address/{address}",
		Rule:                  chain.RuleSafe,
		Confirmations:         300,
		Fallback:              10 * time.Minute,
		EstimatedConfirmation: 5 * time.Minute,
		BlockTime:             2 * time.Second,
		Livemode:              true,
		Assets: []chain.Asset{
			etherAsset("50000000000000"),
			tokenAsset("USDC", "USD Coin", usdcOptimism, 6, "100000"),
			tokenAsset("USDT", "Tether USD", usdtOptimism, 6, "100000"),
			tokenAsset("DAI", "Dai Stablecoin", daiOptimism, 18, "100000000000000000"),
		},
	}
	// OPSepolia is OP Mainnet's test network.
	OPSepolia = chain.Network{
		Slug:                  "op-sepolia",
		Family:                chain.EVM,
		ChainID:               11155420,
		CAIP2:                 "eip155:11155420",
		DisplayName:           "OP Sepolia",
		NativeAsset:           "ETH",
		ExplorerTxURL:         "https://sepolia-optimism.etherscan.io/tx/{txHash}",
		ExplorerAddressURL:    "https://sepolia-optimism.etherscan.io/address/{address}",
		Rule:                  chain.RuleSafe,
		Confirmations:         300,
		Fallback:              10 * time.Minute,
		EstimatedConfirmation: 5 * time.Minute,
		BlockTime:             2 * time.Second,
		FaucetURL:             "https://console.optimism.io/faucet",
		Assets: []chain.Asset{
			etherAsset("1000000000000"),
			tokenAsset("USDC", "USD Coin", usdcOPSepolia, 6, "10000"),
		},
	}
	// Arbitrum is Arbitrum One.
	Arbitrum = chain.Network{
		Slug:                  "arbitrum",
		Family:                chain.EVM,
		ChainID:               42161,
		CAIP2:                 "eip155:42161",
		DisplayName:           "Arbitrum One",
		NativeAsset:           "ETH",
		ExplorerTxURL:         "https://arbiscan.io/tx/{txHash}",
		ExplorerAddressURL:    "https://arbiscan.io/address/{address}",
		Rule:                  chain.RuleSafe,
		Confirmations:         2400,
		Fallback:              10 * time.Minute,
		EstimatedConfirmation: 10 * time.Minute,
		BlockTime:             250 * time.Millisecond,
		Livemode:              true,
		Assets: []chain.Asset{
			etherAsset("50000000000000"),
			tokenAsset("USDC", "USD Coin", usdcArbitrum, 6, "100000"),
			tokenAsset("USDT", "Tether USD", usdtArbitrum, 6, "100000"),
			tokenAsset("DAI", "Dai Stablecoin", daiArbitrum, 18, "100000000000000000"),
		},
	}
	// ArbitrumSepolia is Arbitrum One's test network.
	ArbitrumSepolia = chain.Network{
		Slug:                  "arbitrum-sepolia",
		Family:                chain.EVM,
		ChainID:               421614,
		CAIP2:                 "eip155:421614",
		DisplayName:           "Arbitrum Sepolia",
		NativeAsset:           "ETH",
		ExplorerTxURL:         "https://sepolia.arbiscan.io/tx/{txHash}",
		ExplorerAddressURL:    "https://sepolia.arbiscan.io/address/{address}",
		Rule:                  chain.RuleSafe,
		Confirmations:         2400,
		Fallback:              10 * time.Minute,
		EstimatedConfirmation: 10 * time.Minute,
		BlockTime:             250 * time.Millisecond,
		FaucetURL:             "https://faucet.quicknode.com/arbitrum/sepolia",
		Assets: []chain.Asset{
			etherAsset("1000000000000"),
			tokenAsset("USDC", "USD Coin", usdcArbitrumSepolia, 6, "10000"),
		},
	}
	// Polygon is Polygon PoS.
	Polygon = chain.Network{
		Slug:                  "polygon",
		Family:                chain.EVM,
		ChainID:               137,
		CAIP2:                 "eip155:137",
		DisplayName:           "Polygon PoS",
		NativeAsset:           "POL",
		ExplorerTxURL:         "https://polygonscan.com/tx/{txHash}",
		ExplorerAddressURL:    "https://polygonscan.com/address/{address}",
		Rule:                  chain.RuleFinalized,
		Confirmations:         256,
		Fallback:              9 * time.Minute,
		EstimatedConfirmation: 15 * time.Second,
		BlockTime:             2 * time.Second,
		Livemode:              true,
		Assets: []chain.Asset{
			nativeAsset("POL", "Polygon Ecosystem Token", "100000000000000000"),
			tokenAsset("USDC", "USD Coin", usdcPolygon, 6, "100000"),
			tokenAsset("USDT", "Tether USD", usdtPolygon, 6, "100000"),
			tokenAsset("DAI", "Dai Stablecoin", daiPolygon, 18, "100000000000000000"),
		},
	}
	// PolygonAmoy is Polygon's test network.
	PolygonAmoy = chain.Network{
		Slug:                  "polygon-amoy",
		Family:                chain.EVM,
		ChainID:               80002,
		CAIP2:                 "eip155:80002",
		DisplayName:           "Polygon Amoy",
		NativeAsset:           "POL",
		ExplorerTxURL:         "https://amoy.polygonscan.com/tx/{txHash}",
		ExplorerAddressURL:    "https://amoy.polygonscan.com/address/{address}",
		Rule:                  chain.RuleFinalized,
		Confirmations:         256,
		Fallback:              9 * time.Minute,
		EstimatedConfirmation: 15 * time.Second,
		BlockTime:             2 * time.Second,
		FaucetURL:             "https://faucet.polygon.technology",
		Assets: []chain.Asset{
			nativeAsset("POL", "Polygon Ecosystem Token", "1000000000000000"),
			tokenAsset("USDC", "USD Coin", usdcAmoy, 6, "10000"),
		},
	}
	// BNB is BNB Smart Chain. Its USDC, USDT and DAI are the exchange-pegged tokens, with 18 decimals.
	BNB = chain.Network{
		Slug:                  "bnb",
		Family:                chain.EVM,
		ChainID:               56,
		CAIP2:                 "eip155:56",
		DisplayName:           "BNB Smart Chain",
		NativeAsset:           "BNB",
		ExplorerTxURL:         "https://bscscan.com/tx/{txHash}",
		ExplorerAddressURL:    "https://bscscan.com/address/{address}",
		Rule:                  chain.RuleFinalized,
		Confirmations:         30,
		Fallback:              30 * time.Second,
		EstimatedConfirmation: 10 * time.Second,
		BlockTime:             450 * time.Millisecond,
		Livemode:              true,
		Assets: []chain.Asset{
			nativeAsset("BNB", "BNB", "200000000000000"),
			tokenAsset("USDC", "Binance-Peg USD Coin", usdcBNB, 18, "100000000000000000"),
			tokenAsset("USDT", "Binance-Peg BSC-USD", usdtBNB, 18, "100000000000000000"),
			tokenAsset("DAI", "Binance-Peg Dai Token", daiBNB, 18, "100000000000000000"),
		},
	}
	// BNBTestnet is BNB Smart Chain's test network.
	BNBTestnet = chain.Network{
		Slug:                  "bnb-testnet",
		Family:                chain.EVM,
		ChainID:               97,
		CAIP2:                 "eip155:97",
		DisplayName:           "BNB Smart Chain Testnet",
		NativeAsset:           "BNB",
		ExplorerTxURL:         "https://testnet.bscscan.com/tx/{txHash}",
		ExplorerAddressURL:    "https://testnet.bscscan.com/address/{address}",
		Rule:                  chain.RuleFinalized,
		Confirmations:         30,
		Fallback:              30 * time.Second,
		EstimatedConfirmation: 10 * time.Second,
		BlockTime:             450 * time.Millisecond,
		FaucetURL:             "https://www.bnbchain.org/en/testnet-faucet",
		Assets:                []chain.Asset{nativeAsset("BNB", "BNB", "1000000000000")},
	}
)

// The token contracts; the tests check every checksum. Sources:
//
//   - USDC: the issuer's list "USDC Contract Addresses" (native USDC, not the bridged USDC.e)
//   - USDT: on Ethereum the issuer's list of supported protocols, elsewhere the bridge's mapping
//     (OP and Arbitrum token lists, Polygon's PoS bridge)
//   - DAI: on Ethereum Maker's chain log, elsewhere the mapping of the canonical bridge
//   - BNB Smart Chain: the "Binance-Peg" tokens as named by BscScan
const (
	usdcEthereum chain.Address = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
	usdtEthereum chain.Address = "0xdAC17F958D2ee523a2206206994597C13D831ec7"
	daiEthereum  chain.Address = "0x6B175474E89094C44Da98b954EedeAC495271d0F"

	usdcSepolia chain.Address = "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"

	usdcBase chain.Address = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
	daiBase  chain.Address = "0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb"

	usdcBaseSepolia chain.Address = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"

	usdcOptimism chain.Address = "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85"
	usdtOptimism chain.Address = "0x94b008aA00579c1307B0EF2c499aD98a8ce58e58"
	daiOptimism  chain.Address = "0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1"

	usdcOPSepolia chain.Address = "0x5fd84259d66Cd46123540766Be93DFE6D43130D7"

	usdcArbitrum chain.Address = "0xaf88d065e77c8cC2239327C5EDb3A432268e5831"
	usdtArbitrum chain.Address = "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9"
	daiArbitrum  chain.Address = "0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1"

	usdcArbitrumSepolia chain.Address = "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d"

	usdcPolygon chain.Address = "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359"
	usdtPolygon chain.Address = "0xc2132D05D31c914a87C6611C10748AEb04B58e8F"
	daiPolygon  chain.Address = "0x8f3Cf7ad23Cd3CaDbD9735AFf958023239c6A063"

	usdcAmoy chain.Address = "0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582"

	usdcBNB chain.Address = "0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d"
	usdtBNB chain.Address = "0x55d398326f99059fF775485246999027B3197955"
	daiBNB  chain.Address = "0x1AF3F329e8BE154074D8769D1FFa4eE058B1DBc3"
)

// Local returns the network of a development node (anvil, geth --dev) with ether and the given
// tokens. Payments confirm after 2 blocks.
func Local(chainID uint64, tokens ...chain.Asset) chain.Network {
	assets := append([]chain.Asset{etherAsset("1")}, tokens...)

	return chain.Network{
		Slug:          "local",
		Family:        chain.EVM,
		ChainID:       chainID,
		CAIP2:         fmt.Sprintf("eip155:%d", chainID),
		DisplayName:   "Local development node",
		NativeAsset:   "ETH",
		Rule:          chain.RuleConfirmations,
		Confirmations: 2,
		BlockTime:     time.Second,
		Assets:        assets,
	}
}

// etherAsset returns ether with a minimum amount in wei.
func etherAsset(minAmount string) chain.Asset { return nativeAsset("ETH", "Ether", minAmount) }

// dustBPS is the part of an asset's minimum amount, in basis points, below which a transfer is dust: a cent
// on Ethereum, a tenth of a cent where fees are lower.
const dustBPS = 100

// nativeAsset returns a native coin of 18 decimals with a minimum amount in base units.
func nativeAsset(symbol, name, minAmount string) chain.Asset {
	return chain.Asset{
		Symbol:    symbol,
		Name:      name,
		Kind:      chain.Native,
		Decimals:  18,
		MinAmount: chain.MustAmount(minAmount),
		Dust:      chaindata.BPS(chain.MustAmount(minAmount), dustBPS),
	}
}

// tokenAsset returns an ERC-20 token with a minimum amount in base units.
func tokenAsset(symbol, name string, contract chain.Address, decimals uint8, minAmount string) chain.Asset {
	return chain.Asset{
		Symbol:    symbol,
		Name:      name,
		Kind:      chain.Token,
		Contract:  contract,
		Decimals:  decimals,
		MinAmount: chain.MustAmount(minAmount),
		Dust:      chaindata.BPS(chain.MustAmount(minAmount), dustBPS),
	}
}
