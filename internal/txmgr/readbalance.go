package txmgr

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// BalanceRead returns the balance of an address after the newest block that was read, in base units.
//
// fault.Unsupported: the driver cannot read balances. fault.Unavailable: no block was read, no node has its
// state, or no two nodes agree, where several are configured.
func (o *Manager) BalanceRead(ctx context.Context, network string, of chain.Holding) (chain.Amount, error) {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return chain.Amount{}, err
	}

	balancer, ok := driver.(chain.Balancer)
	if !ok {
		return chain.Amount{}, balancesUnsupported(network)
	}

	cursor, _, err := o.db.Cursor(ctx, network)
	if err != nil {
		return chain.Amount{}, err
	}

	if cursor.At.IsZero() {
		return chain.Amount{}, fault.New(
			fault.Unavailable,
			"not_read",
			"no block of network %s was read yet",
			network,
		)
	}

	amounts, err := balancer.Balances(ctx, cursor.At, []chain.Holding{of})
	if unreadable := (*chain.UnreadableError)(nil); errors.As(err, &unreadable) {
		return chain.Amount{}, fault.Wrap(
			err,
			fault.Unavailable,
			"balance_unreadable",
			"the token, or no second node, answers for what %s holds",
			of.Address,
		)
	}

	if err != nil {
		return chain.Amount{}, err
	}

	if len(amounts) != 1 {
		return chain.Amount{}, balancesIncomplete(network, len(amounts), 1)
	}

	return amounts[0], nil
}

func balancesUnsupported(network string) error {
	return fault.New(
		fault.Unsupported, "balances_unsupported",
		"the driver of network %s cannot read balances",
		network,
	)
}

// HasBalances reports whether a network's balances can be read from the node or summed up from coins.
func (o *Manager) HasBalances(network string) bool {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return false
	}

	_, reads := driver.(chain.Balancer)
	_, coins := driver.(chain.CoinReader)

	return reads || coins
}
