package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/payout"
)

// This file handles transactions of networks that no process serves any more.

// unserved are the wallets whose transactions wait for a network that no process serves.
type unserved struct {
	mu      sync.Mutex
	wallets []health.Wallet
}

func (u *unserved) set(wallets []health.Wallet) {
	u.mu.Lock()
	defer u.mu.Unlock()

	u.wallets = wallets
}

func (u *unserved) get() []health.Wallet {
	u.mu.Lock()
	defer u.mu.Unlock()

	return u.wallets
}

// failStale fails the stale payouts of networks that no process serves any more, because they have no worker.
// It remembers for Health the wallets that wait there.
func (e *Engine) failStale(ctx context.Context) (did bool, err error) {
	networks, err := e.config.Store.DueNetworks(ctx)
	if err != nil {
		return false, err
	}

	var waiting []health.Wallet

	for _, network := range networks {
		if _, served := e.Networks.Network(network); served {
			continue
		}

		left, failed, err := e.failStaleOf(ctx, network)
		if err != nil {
			return did, err
		}

		did = did || failed

		waiting = append(waiting, waitingWallets(network, left, e.config.Now().Add(-unservedFor))...)
	}

	e.unserved.set(waiting)

	return did, nil
}

// failStaleOf fails the stale payouts of one network, unless another process follows it. It returns the
// wallets that wait.
func (e *Engine) failStaleOf(
	ctx context.Context,
	network string,
) (waiting []wallet.Transaction, did bool, err error) {
	held, err := e.heartbeat.Take(ctx, follow.LeaseName(network))
	if err != nil || len(held) == 0 {
		return nil, false, err
	}

	defer func() { // also while a panic passes through
		err = errors.Join(err, e.heartbeat.Release(ctx, held...))
	}()

	return e.Transactions.FailStale(ctx, network)
}

// unservedFor is the least age of a transaction that Health names: while a network changes its process, no
// process serves it for a moment.
const unservedFor = payout.GiveUpAfter

// waitingWallets returns the wallets with transactions that were made before a time and wait for a network,
// by address.
func waitingWallets(
	network string,
	waiting []wallet.Transaction,
	before time.Time,
) (wallets []health.Wallet) {
	count := map[chain.Address]int{}

	for _, t := range waiting {
		if t.CreatedAt.After(before) {
			continue
		}

		from := t.Order.From.Address
		if count[from]++; count[from] == 1 {
			wallets = append(wallets, health.Wallet{
				Network:   network,
				Address:   string(from),
				AccountID: t.Owner.AccountID,
			})
		}
	}

	for i := range wallets {
		wallets[i].Reason = fmt.Sprintf(
			"no process follows the network, for which %d of its transactions wait: start one that has its driver",
			count[chain.Address(wallets[i].Address)],
		)
	}

	slices.SortFunc(wallets, func(a, b health.Wallet) int { return strings.Compare(a.Address, b.Address) })

	return wallets[:min(len(wallets), maxFrozen)]
}
