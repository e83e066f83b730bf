// Package price bounds what one node says a transaction must pay. It is the home of that rule for every driver: tips,
// base fees, fee rates and priority prices pass through Bound.
package price

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Margin is the multiple of what verified blocks paid that a node may name alone.
const Margin = 2

// Bound limits a price. All prices are in the unit of the driver.
type Bound struct {
	// Shown is the most that a node may name alone: Margin times what verified blocks paid.
	Shown chain.Amount
	// Highest is the driver's ceiling, whatever nodes and blocks say.
	Highest chain.Amount
}

// Of returns the price to use where a node says one. Within Shown it is the node's own. Above it the lower of two
// nodes counts, at least Shown; without a second answer it is Shown. It is never above Highest.
//
// second returns the price of another node; ok is false where none answers. It is called for prices above Shown only.
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
