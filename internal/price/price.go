// Package price bounds the price that one node asks a transaction to pay. It is the home of that rule for
// every driver: tips, base fees, fee rates and priority prices pass through Bound.
package price

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Margin is the multiple of the price in verified blocks that a single node may ask for.
const Margin = 2

// Bound limits a price. All prices are in the unit of the driver.
type Bound struct {
	// Shown is the most that a single node may ask for: Margin times the price in verified blocks.
	Shown chain.Amount
	// Highest is the driver's ceiling for all prices of nodes and blocks.
	Highest chain.Amount
}

// Of returns the price to use if a node asks for the price said. Up to Shown it is said. Above Shown it is
// the lower of two nodes' prices, at least Shown; without a second answer it is Shown. It is never above
// Highest.
//
// second returns the price of another node; ok is false if none answers. It is only called for prices above
// Shown.
func (b Bound) Of(said chain.Amount, second func() (other chain.Amount, ok bool)) chain.Amount { // spec D12.2
	shown := chaindata.Min(b.Shown, b.Highest)
	if said.Cmp(shown) <= 0 {
		return said
	}

	other, ok := second()
	if !ok {
		return shown
	}

	return chaindata.Min(chaindata.Max(chaindata.Min(said, other), shown), b.Highest)
}
