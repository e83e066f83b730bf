package txmgr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// stuckAfter is the multiple of Config.ReplaceAfter after which a wallet counts as stuck.
const stuckAfter = 3

// stakeOutAfter is the time after which a delegation that was not taken back is reported. stakeRetryWithin is
// longer than the time until the next try to end it.
const (
	stakeOutAfter    = 15 * time.Minute
	stakeRetryWithin = 24 * time.Hour
)

// StuckWallets returns the stuck wallets of a network. No block that was read holds the transaction of their
// lowest nonce, long after it was signed, so every later transaction waits for it. A wallet is also stuck if
// a block holds its transaction while every node denies it: its outcome waits. For networks without nonces it
// returns the wallets whose stake is not taken back, and those whose coins a fork removed.
func (o *Manager) StuckWallets(ctx context.Context, network string) ([]health.Wallet, error) {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return nil, err
	}

	if _, ok := driver.(chain.CoinReader); ok {
		return o.lostWallets(ctx, network)
	}

	if _, ok := driver.(chain.Nonces); !ok {
		return o.stakesOut(ctx, network)
	}

	due, err := o.db.DueTransactions(ctx, network, o.now().Add(maxPendingInterval), 0)
	if err != nil {
		return nil, err
	}

	lowest := map[chain.Address]wallet.Transaction{}

	for _, t := range due {
		if !waitsAtNonce(t) {
			continue
		}

		from := t.Order.From.Address
		if have, ok := lowest[from]; !ok || nonceOf(t) < nonceOf(have) {
			lowest[from] = t
		}
	}

	var stuck []health.Wallet

	for address, t := range lowest {
		since, err := o.waitsSince(ctx, t)
		if err != nil {
			return nil, err
		}

		if o.now().Sub(since) >= stuckAfter*o.config.ReplaceAfter {
			row, err := AttemptRow(ctx, o.db, t)
			if err != nil {
				return nil, err
			}

			stuck = append(stuck, health.Wallet{
				Network:    network,
				Address:    string(address),
				AccountID:  t.Owner.AccountID,
				StuckSince: since,
				Reason:     stuckReason(t, row, o.now().Sub(since).Truncate(time.Minute)),
			})
		}
	}

	slices.SortFunc(stuck, func(a, b health.Wallet) int { return cmp.Compare(a.Address, b.Address) })

	return stuck, nil
}

// stakesOut returns the wallets whose delegated stake was not taken back long after the release, one row for
// each delegation.
func (o *Manager) stakesOut(ctx context.Context, network string) ([]health.Wallet, error) {
	due, err := o.db.DueTransactions(ctx, network, o.now().Add(stakeRetryWithin), 0)
	if err != nil {
		return nil, err
	}

	var out []health.Wallet

	for _, t := range due {
		if t.Kind != wallet.Undelegate || !walletstate.Live(t) {
			continue
		}

		ends, err := o.db.TransactionsOf(ctx, t.ObjectID)
		if err != nil {
			return nil, err
		}

		since, failure := ends[0].CreatedAt, "it waits for a block"
		if o.now().Sub(since) < stakeOutAfter {
			continue
		}

		for _, end := range ends {
			if end.Failure != "" {
				failure = end.Failure
			}
		}

		stake := t.Order.Outputs[0]
		out = append(out, health.Wallet{
			Network:   t.Network,
			Address:   string(t.Order.From.Address),
			AccountID: t.Owner.AccountID,
			Reason: fmt.Sprintf(
				"the stake of %s delegated to %s is not taken back since %s: %s; it is tried again",
				stake.Amount, stake.To, since.Format(time.RFC3339), failure,
			),
		})
	}

	return out, nil
}

// waitsAtNonce reports whether a transaction needs its nonce and is in no block: it is signed, or a cancel.
func waitsAtNonce(t wallet.Transaction) bool {
	return t.State == wallet.Signed || t.State == wallet.Broadcast ||
		t.State == wallet.Queued && t.Kind == wallet.Cancel
}

// nonceOf returns the nonce of signed bytes or of a cancel that is not signed yet.
func nonceOf(t wallet.Transaction) uint64 {
	if t.State == wallet.Queued {
		return t.Order.Nonce
	}

	return t.Nonce
}

// waitsSince returns the time from which a nonce has waited for a block. The nonce of a cancel has waited
// since the displaced transaction was signed.
func (o *Manager) waitsSince(ctx context.Context, t wallet.Transaction) (time.Time, error) {
	if t.Kind == wallet.Cancel {
		displaced, err := o.db.Transaction(ctx, t.ObjectID)
		if err != nil && !errors.Is(err, fault.NotFound) {
			return time.Time{}, err
		}

		if len(displaced.Attempts) > 0 && displaced.Nonce == nonceOf(t) {
			return displaced.Attempts[0].SignedAt, nil
		}
	}

	if len(t.Attempts) == 0 {
		return t.CreatedAt, nil
	}

	return t.Attempts[0].SignedAt, nil
}

// stuckReason describes for people what a stuck wallet waits for.
func stuckReason(t wallet.Transaction, row wallet.Outgoing, waited time.Duration) string {
	if row.TxHash != "" {
		return fmt.Sprintf(
			"block %d holds the %s of %s, and no node shows it there after %s: its outcome waits",
			row.Block.Height, t.Kind, t.ObjectID, waited,
		)
	}

	reason := "no block holds the " + string(t.Kind) + " of " + t.ObjectID + " after " + waited.String()
	if n := len(t.Attempts); n > 0 && t.Attempts[n-1].LastSendError != "" {
		reason += "; the node said " + t.Attempts[n-1].LastSendError
	}

	return reason
}
