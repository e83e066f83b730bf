package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/shopspring/decimal"
)

// Family groups networks that share address format, keys and transaction model.
type Family string

// The families. Sim is the in-memory network of chain/sim.
const (
	EVM     Family = "evm"
	Bitcoin Family = "bitcoin"
	Solana  Family = "solana"
	Tron    Family = "tron"
	Sim     Family = "sim"
)

// Rule says when a block counts as confirmed.
type Rule string

// The rules of specification 2.4. RuleConfirmations counts blocks on top of (and including) the block;
// RuleSafe and RuleFinalized wait for the network's own finality.
const (
	RuleConfirmations Rule = "confirmations"
	RuleSafe          Rule = "safe"
	RuleFinalized     Rule = "finalized"
)

// Tier requires more confirmations from a value on.
type Tier struct {
	// FromUSD is the smallest sum, in USD, that this tier applies to.
	FromUSD decimal.Decimal
	// Confirmations is the number of blocks that such a sum waits for, counting its own block as 1.
	Confirmations uint64
}

// Network describes one network: its fields in the API and how payments on it confirm.
type Network struct {
	// Slug is the network's name in the API, 2 to 32 of a-z and 0-9 with single hyphens between them: "ethereum",
	// "base-sepolia".
	Slug string
	// Family groups networks that share addresses and keys.
	Family Family
	// ChainID is the EVM chain id (EIP-155); 0 elsewhere.
	ChainID uint64
	// CAIP2 identifies the network worldwide (CAIP-2), such as "eip155:1".
	CAIP2 string
	// DisplayName is the name for people.
	DisplayName string
	// NativeAsset is the symbol of the coin that network fees are paid in.
	NativeAsset string
	// ExplorerTxURL contains {txHash}; ExplorerAddressURL contains {address}. Both are http or https; either may
	// be empty.
	ExplorerTxURL, ExplorerAddressURL string
	// Rule says when a payment confirms.
	Rule Rule
	// Confirmations is the number of blocks that a payment needs under RuleConfirmations, its own block
	// counting as 1. Under the other rules it is the fall-back depth when finality cannot be read.
	Confirmations uint64
	// Fallback is the age, by the times of blocks, that a block must have in addition under RuleSafe and
	// RuleFinalized when finality cannot be read. A network that speeds up reaches Confirmations sooner. 0
	// requires Confirmations alone.
	Fallback time.Duration
	// Tiers require more confirmations from a value on. They ascend by FromUSD; none has fewer confirmations
	// than the one before it or the network. May be empty.
	Tiers []Tier
	// EstimatedConfirmation is the expected time from sending to confirmed; 0 if it is not known.
	EstimatedConfirmation time.Duration
	// BlockTime is the usual time between blocks, for display. Code that depends on a network's pace measures
	// it.
	BlockTime time.Duration
	// FaucetURL is a page that gives test coins; test networks only.
	FaucetURL string
	// Livemode is true for networks whose coins are worth money.
	Livemode bool
	// Assets can be used by invoices and payouts on the network; the one of kind Native is the fee coin.
	Assets []Asset
}

// ID returns the network's id: the first 12 bytes of SHA-256 of its CAIP-2 name, as hex.
func (n Network) ID() string { return derivedID(n.CAIP2) }

// Space names the key space that the network's addresses belong to: its family and mode. An address
// has one owner in its whole space (an EVM address is the same on every EVM network).
func (n Network) Space() Space { return Space{Family: n.Family, Livemode: n.Livemode} }

// Native returns the asset that fees are paid in; ok is false for a network configured without one.
func (n Network) Native() (Asset, bool) {
	for _, a := range n.Assets {
		if a.Kind == Native {
			return a, true
		}
	}

	return Asset{}, false
}

// Asset returns the network's asset of the given symbol.
func (n Network) Asset(symbol string) (Asset, bool) {
	for _, a := range n.Assets {
		if a.Symbol == symbol {
			return a, true
		}
	}

	return Asset{}, false
}

// AssetByID returns the network's asset of the given id.
func (n Network) AssetByID(id string) (Asset, bool) {
	for _, a := range n.Assets {
		if a.ID == id {
			return a, true
		}
	}

	return Asset{}, false
}

// With returns a copy of the network with complete assets: it sets each one's id, network and mode from the
// network, and lowers Dust to MinAmount. Drivers call it once on the network that they are configured with.
func (n Network) With(assets ...Asset) Network {
	all := make([]Asset, 0, len(n.Assets)+len(assets))
	for _, a := range append(append(all, n.Assets...), assets...) {
		a.Network, a.Livemode = n.Slug, n.Livemode

		a.ID = AssetID(n.CAIP2, a.Contract)
		if a.Price == "" {
			a.Price = a.Symbol
		}

		if a.MinAmount.Less(a.Dust) {
			a.Dust = a.MinAmount
		}

		all = append(all, a)
	}

	n.Assets = all

	return n
}

// AssetKind is native (the network's own coin) or token.
type AssetKind string

// The kinds of specification 2.5.
const (
	Native AssetKind = "native"
	Token  AssetKind = "token"
)

// Asset is a coin or token on one network.
type Asset struct {
	// ID is derived from network and contract, the same everywhere (see AssetID). 24 hex characters.
	ID string
	// Symbol is unique on its network, at most 16 characters.
	Symbol string
	// Network is the slug of the network it lives on.
	Network string
	// Name is the name for people; may be empty.
	Name string
	// Kind is Native or Token.
	Kind AssetKind
	// Contract is the token's contract or mint in canonical form; empty for the native coin.
	Contract Address
	// Decimals is the exponent of a unit: one unit is 10^Decimals base units.
	Decimals uint8
	// MinAmount is the smallest amount an invoice option may ask for, in base units.
	MinAmount Amount
	// Dust is the smallest transfer that is a payment by itself, in base units, at most MinAmount. Smaller
	// transfers are kept until their sum reaches it or completes an invoice. Defaults to 0: every transfer is
	// a payment.
	Dust Amount
	// Price is the symbol under which price sources quote the asset. Defaults to Symbol.
	Price string
	// Livemode is that of the network.
	Livemode bool
}

// AssetID returns the id of an asset: the first 12 bytes of SHA-256 of caip2 + "/" + contract, or
// "native" for the native coin, as hex.
func AssetID(caip2 string, contract Address) string {
	if contract == "" {
		contract = "native"
	}

	return derivedID(caip2 + "/" + string(contract))
}

func derivedID(s string) string { // spec D1.2
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:12])
}

// Address is an address in the canonical form of its network, as Driver.ParseAddress returns it
// (EIP-55, bech32 in lower case, base58). Two addresses are the same exactly when the strings are.
type Address string // spec D9.15

// Space is a key space: a family in one mode. Derivation indexes count up per space.
type Space struct {
	Family   Family
	Livemode bool
}

// String returns "evm/live" or "evm/test".
func (s Space) String() string {
	if s.Livemode {
		return string(s.Family) + "/live"
	}

	return string(s.Family) + "/test"
}
