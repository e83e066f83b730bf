package chaindata

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// PriceSymbol returns the symbol under which the asset is quoted: Price, or Symbol if Price is empty.
func PriceSymbol(a chain.Asset) string {
	if a.Price != "" {
		return a.Price
	}

	return a.Symbol
}

// Fallback returns the age at which a block is final by a network's rule when finality cannot be read.
func Fallback(n chain.Network) time.Duration {
	if n.Rule == chain.RuleConfirmations {
		return 0
	}

	return n.Fallback
}

// IsOld reports whether a block is as old as Fallback at the time of the last block. If Fallback is 0, block
// times do not count and it is true: a later block may have an earlier time.
func IsOld(n chain.Network, last, block time.Time) bool {
	age := Fallback(n)

	return age == 0 || last.Sub(block) >= age
}
