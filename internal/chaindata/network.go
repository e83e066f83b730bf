package chaindata

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// PriceSymbol returns the symbol under which the asset is quoted: Price, or Symbol without one.
func PriceSymbol(a chain.Asset) string {
	if a.Price != "" {
		return a.Price
	}

	return a.Symbol
}
