// Package agree has drivers ask several nodes for what no block proves, and take what two of them say. Package
// chain/internal/failover asks the nodes, one after the other; this package compares their answers.
package agree

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// ReadBalances reads holdings from one node, in base units and in the order given, and those that it cannot read. A
// node that has no answer for all of them is an error.
type ReadBalances[N any] func(
	ctx context.Context,
	node N,
	holdings []chain.Holding,
) (amounts []chain.Amount, unreadable []chain.UnreadableHolding, err error)

// Balances returns the balances of holdings, in base units and in the order given, as two nodes say, or the only one
// that is configured. No block proves what a node says of a balance: of several configured nodes one is unreadable
//   - with the balance 0 (nodes_disagree), where those that answer say something else each;
//   - with what one alone says, as Provisional (nodes_missing), where no other one answers for it.
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

// comparison is what nodes say of holdings.
type comparison[N failover.Member] struct {
	set      *failover.Set[N]
	holdings []chain.Holding
	read     ReadBalances[N]
	// first is the node whose word amounts and unreadable are.
	first      N
	amounts    []chain.Amount
	unreadable []chain.UnreadableHolding
}

// compare asks other nodes, until two say the same of each holding that the first could read. Where several say
// something else each, the holding is unreadable.
func (c *comparison[N]) compare(ctx context.Context, need uint64) error {
	said := make([][]chain.Amount, len(c.holdings))

	var open []int // indexes of the holdings of which no two nodes said the same so far

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

// readSome returns what a node says of some of the holdings, by index; those that it cannot read are left out.
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
