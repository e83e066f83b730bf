// Package agree reads data that no block proves from several nodes, and returns what two of them agree about.
// Package chain/internal/failover asks the nodes, one after the other; this package compares their answers.
package agree

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// ReadBalances reads holdings from one node. It returns their balances, in base units and in the order given,
// and the holdings that it cannot read. If the node does not answer for all of them, it returns an error.
type ReadBalances[N any] func(
	ctx context.Context,
	node N,
	holdings []chain.Holding,
) (amounts []chain.Amount, unreadable []chain.UnreadableHolding, err error)

// Balances returns the balances of holdings, in base units and in the order given. Two nodes must agree about
// each balance, because no block proves it; a single configured node suffices by itself. Otherwise the
// holding is unreadable:
//   - with the balance 0 (nodes_disagree), if several nodes answer and no two agree;
//   - with one node's balance, as Provisional (nodes_missing), if only one node answers for it.
//
// Errors: those of failover.Set.Ask; chain.UnreadableError, with all other balances.
func Balances[N failover.Member](
	ctx context.Context,
	s *failover.Set[N],
	attempts int,
	need uint64,
	holdings []chain.Holding,
	read ReadBalances[N],
) ([]chain.Amount, error) {
	c := comparison[N]{set: s, holdings: holdings, read: read}

	err := s.Ask(ctx, attempts, need, func(ctx context.Context, node N) (err error) {
		c.first = node
		c.amounts, c.unreadable, err = read(ctx, node, holdings)

		return err
	})
	if err != nil {
		return nil, err
	}

	if err := c.compare(ctx, need); err != nil {
		return nil, err
	}

	if len(c.unreadable) > 0 {
		return c.amounts, &chain.UnreadableError{Network: s.Network, Holdings: c.unreadable}
	}

	return c.amounts, nil
}

// comparison holds the nodes' answers about holdings.
type comparison[N failover.Member] struct {
	set      *failover.Set[N]
	holdings []chain.Holding
	read     ReadBalances[N]
	// first is the node that gave amounts and unreadable.
	first      N
	amounts    []chain.Amount
	unreadable []chain.UnreadableHolding
}

// compare asks other nodes until two agree about each holding that the first node could read. If several
// answer and no two agree, the holding is unreadable.
func (c *comparison[N]) compare(ctx context.Context, need uint64) error {
	said := make([][]chain.Amount, len(c.holdings))

	var open []int // indexes of the holdings about which no two nodes have agreed yet

	for i, amount := range c.amounts {
		said[i] = []chain.Amount{amount}

		if !slices.ContainsFunc(c.unreadable, func(u chain.UnreadableHolding) bool { return u.Index == i }) {
			open = append(open, i)
		}
	}

	err := c.set.AskBeside(ctx, c.first, need, func(ctx context.Context, node N) (bool, error) {
		answered, err := c.readSome(ctx, node, open)
		if err != nil {
			return false, err
		}

		open = slices.DeleteFunc(open, func(i int) bool {
			amount, ok := answered[i]
			if ok && slices.Contains(said[i], amount) {
				c.amounts[i] = amount
				return true
			}

			if ok {
				said[i] = append(said[i], amount)
			}

			return false
		})

		return len(open) == 0, nil
	})

	disputed := false

	for _, i := range open {
		holding := chain.UnreadableHolding{Holding: c.holdings[i], Index: i}

		switch {
		case len(said[i]) > 1:
			c.amounts[i] = chain.Amount{}
			holding.Err, disputed = c.set.Disagree("a balance"), true
		case len(c.set.Nodes) > 1:
			holding.Err, holding.Provisional = c.set.Missing(nil, "a balance"), true
		default:
			continue
		}

		c.unreadable = append(c.unreadable, holding)
	}

	if disputed {
		c.set.DemoteNode("no other node says the same balances")
	}

	return err
}

// readSome returns a node's balances of some of the holdings, by index. It leaves out those that it cannot
// read.
func (c *comparison[N]) readSome(ctx context.Context, node N, indexes []int) (map[int]chain.Amount, error) {
	if len(indexes) == 0 {
		return nil, nil
	}

	asked := make([]chain.Holding, len(indexes))
	for i, index := range indexes {
		asked[i] = c.holdings[index]
	}

	amounts, unreadable, err := c.read(ctx, node, asked)
	if err != nil {
		return nil, err
	}

	out := make(map[int]chain.Amount, len(indexes))
	for i, index := range indexes {
		out[index] = amounts[i]
	}

	for _, u := range unreadable {
		delete(out, indexes[u.Index])
	}

	return out, nil
}
