package sim

import (
	"math"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/price"
)

// prices are those of the next block, in base units of the native coin per gas.
type prices struct{ baseFee, priority uint64 }

// feeCap returns what Build offers at most for orders that do not say.
func (p prices) feeCap() uint64 { return 2*p.baseFee + p.priority }

// exact returns what a transaction offers, and pays, whose fee is taken out of its amount.
func (p prices) exact() uint64 { return p.baseFee + p.baseFee/8 + p.priority }

// says returns the prices that a node names.
func (n *node) says() prices {
	said := prices{baseFee: n.c.baseFee, priority: n.c.priority}
	if n.faults.BaseFee > 0 {
		said.baseFee = n.faults.BaseFee
	}

	if n.faults.Priority > 0 {
		said.priority = n.faults.Priority
	}

	return said
}

// prices returns what the driver takes of the prices that a node names; see price.Bound. The blocks show the network's
// own.
func (n *node) prices() prices {
	said := n.says()

	return prices{
		baseFee:  n.bounded(said.baseFee, n.c.baseFee, func(p prices) uint64 { return p.baseFee }),
		priority: n.bounded(said.priority, n.c.priority, func(p prices) uint64 { return p.priority }),
	}
}

func (n *node) bounded(said, shown uint64, of func(prices) uint64) uint64 {
	bound := price.Bound{
		Alone:   price.Alone(chain.Units(shown), true),
		Paid:    chain.Units(shown),
		Highest: chain.Units(math.MaxUint64 / 8),
	}

	taken, _ := bound.Of(chain.Units(said), func() (chain.Amount, bool) {
		for _, other := range n.c.nodes {
			if other != n && other.begin() == nil {
				return chain.Units(of(other.says())), true
			}
		}

		return chain.Amount{}, false
	}).Uint64()

	return taken
}
