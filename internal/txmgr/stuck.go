package txmgr

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/health"
)

// stuckAfter is after how many times Config.ReplaceAfter a wallet counts as stuck.
const stuckAfter = 3

// StuckWallets returns the wallets of a network that have not moved: no block that was read holds the
// transaction of their lowest nonce, long after it was signed. Everything that they sign later waits
// for it. It returns none for networks without nonces.
func (o *Manager) StuckWallets(ctx context.Context, network string) ([]health.Wallet, error) {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return nil, err
	}

	if _, ok := driver.(chain.Nonces); !ok {
		return nil, nil
	}

	due, err := o.db.DueTransactions(ctx, network, o.now().Add(maxPendingInterval), 0)
	if err != nil {
		return nil, err
	}

	lowest := map[chain.Address]wallet.Transaction{}

	for _, t := range due {
		if t.State != wallet.Signed && t.State != wallet.Broadcast {
			continue
		}

		from := t.Order.From.Address
		if have, ok := lowest[from]; !ok || t.Nonce < have.Nonce {
			lowest[from] = t
		}
	}

	var stuck []health.Wallet

	for address, t := range lowest {
		since := t.Attempts[0].SignedAt
		if o.now().Sub(since) >= stuckAfter*o.config.ReplaceAfter {
			stuck = append(stuck, health.Wallet{
				Network:    network,
				Address:    string(address),
				Account:    t.Owner.AccountID,
				StuckSince: since,
				Reason:     stuckReason(t, o.now().Sub(since).Truncate(time.Minute)),
			})
		}
	}

	slices.SortFunc(stuck, func(a, b health.Wallet) int { return cmp.Compare(a.Address, b.Address) })

	return stuck, nil
}

// stuckReason returns what a stuck wallet waits for, for people.
func stuckReason(t wallet.Transaction, waited time.Duration) string {
	reason := "no block holds the " + string(t.Kind) + " of " + t.ObjectID + " after " + waited.String()
	if problem := t.LastAttempt().LastSendError; problem != "" {
		reason += "; the node said " + problem
	}

	return reason
}
