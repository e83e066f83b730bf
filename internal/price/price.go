// Package price bounds what one node says a transaction must pay. It is the home of that rule for every driver: tips,
// base fees, fee rates and priority prices pass through Bound.
package price

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Margin is the multiple of what a full block paid that a node may name alone.
const Margin = 2

// Alone returns what a node may name alone beside a verified block: what the block paid, and Margin times that where
// the block was more than half full. A block with room took what it was offered. What it paid may be our own
// transactions' price alone, and must not raise that of the next ones.
func Alone(paid chain.Amount, full bool) chain.Amount {
	if full {
		return paid.Mul(Margin)
	}

	return paid
}

// Bound limits a price. All prices are in the unit of the driver.
type Bound struct {
	// Alone is the most that a node may name alone; see the function of that name.
	Alone chain.Amount
	// Paid is the highest price that verified blocks paid, or that is always paid.
	Paid chain.Amount
	// Highest is the driver's ceiling, whatever nodes and blocks say.
	Highest chain.Amount
}

// Of returns the price to use where a node says one. Up to Alone it is the node's own. Above it the lower of two nodes
// counts, at least Paid; without a second answer it is Alone. It is never above Highest.
//
// second returns the price of another node; ok is false where none answers. It is called for prices above Alone only.
func (b Bound) Of(said chain.Amount, second func() (other chain.Amount, ok bool)) chain.Amount { // spec D12.2
	alone := chaindata.Min(b.Alone, b.Highest)
	if said.Cmp(alone) <= 0 {
		return said
	}

	other, ok := second()
	if !ok {
		return alone
	}

	return chaindata.Min(chaindata.Max(chaindata.Min(said, other), b.Paid), b.Highest)
}
