package chaindata

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
)

// AllowsDestination reports whether a list of destinations contains one; a nil list contains all.
func AllowsDestination(list []chain.Destination, d chain.Destination) bool {
	return list == nil || slices.Contains(list, d)
}
