package engine

import (
	"context"

	"github.com/seed-8ee7f392/payments/internal/follow"
)

// checkBalances compares the due balances of a network's addresses, in the process that follows the network.
// It reports whether more may be due.
func (e *Engine) checkBalances(ctx context.Context, f *follow.Follower) (bool, error) {
	if !f.Health().Following {
		return false, nil
	}

	network := f.Driver.Network().Slug
	did, err := e.Ingester.CheckBalances(ctx, network)
	f.SetUnreadable(e.Ingester.Unreadable(network))

	return did, err
}
