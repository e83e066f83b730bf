package chaindata

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
)

// AllowsDestination reports whether a list of destinations has one; nil has all.
func AllowsDestination(list []chain.Destination, d chain.Destination) bool {
	return list == nil || slices.Contains(list, d)
}
