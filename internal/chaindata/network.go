package chaindata

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// PriceSymbol returns the symbol under which the asset is quoted: Price, or Symbol without one.
func PriceSymbol(a chain.Asset) string {
	if a.Price != "" {
		return a.Price
	}

	return a.Symbol
}

// Fallback returns how old a block has to be to be final by a network's rule where finality cannot be read.
func Fallback(n chain.Network) time.Duration {
	if n.Rule == chain.RuleConfirmations {
		return 0
	}

	return n.Fallback
}

// IsOld reports whether a block is as old as Fallback at the time of the last block. Where that is 0 the times of
// blocks say nothing: a later block may be timed before an earlier one.
func IsOld(n chain.Network, last, block time.Time) bool {
	age := Fallback(n)

	return age == 0 || last.Sub(block) >= age
}
