package engine

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/ingest"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file reads the balances of a network's deposit addresses, to find money that no transfer shows.

const (
	// balanceSweepBatch is how many deposit addresses one call of checkNext reads.
	balanceSweepBatch = 100
	// balanceSweepEvery is the least time between the starts of two sweeps over all addresses.
	balanceSweepEvery = 10 * time.Minute
	// maxClockSkew is how far the time of a block may be from ours.
	maxClockSkew = 15 * time.Minute
)

// balanceSweepLoop is the progress of one network's balance sweep. Only the process that follows the network
// has one; a process that takes over begins anew.
type balanceSweepLoop struct {
	engine   *Engine
	follower *follow.Follower
	network  chain.Network

	begun time.Time
	// account is the id of the last account whose addresses were all read.
	account string
	// after is the id of the last deposit address that was read; empty starts at the newest.
	after string
	// done reports that no sweep is under way.
	done bool
}

func newBalanceSweepLoop(e *Engine, f *follow.Follower) *balanceSweepLoop {
	return &balanceSweepLoop{engine: e, follower: f, network: f.Driver.Network(), done: true}
}

// checkNext reads the balances of the next addresses and reports whether it found money.
func (r *balanceSweepLoop) checkNext(ctx context.Context) (bool, error) {
	if _, ok := r.follower.Driver.(chain.Balancer); !ok || !r.follower.Health().Following {
		return false, nil
	}

	now := r.engine.config.Now()
	if r.done {
		if now.Sub(r.begun) < balanceSweepEvery {
			return false, nil
		}

		r.begun, r.account, r.after, r.done = now, "", "", false
	}

	account, after := r.account, r.after

	page, err := r.next(ctx)
	if err != nil || len(page) == 0 {
		return false, err
	}

	found, err := r.engine.Ingester.CheckDeposits(ctx, r.network.Slug, page)
	if err != nil {
		r.account, r.after = account, after // the same page next time
	}

	return found > 0, err
}

// next returns the next addresses of the sweep; none at its end.
func (r *balanceSweepLoop) next(ctx context.Context) ([]invoice.DepositAddress, error) {
	for {
		accounts, err := r.engine.config.Store.Accounts(ctx, r.account, 1)
		if err != nil || len(accounts) == 0 {
			r.done = err == nil
			return nil, err
		}

		page, err := r.engine.config.Store.DepositAddresses(ctx, invoice.DepositFilter{
			Owner:    event.Owner{AccountID: accounts[0].ID, Livemode: r.network.Livemode},
			Networks: []string{r.network.Slug},
			After:    r.after,
			Limit:    balanceSweepBatch,
		})
		if err != nil {
			return nil, err
		}

		if len(page) < balanceSweepBatch {
			r.account, r.after = accounts[0].ID, ""
		} else {
			r.after = page[len(page)-1].ID
		}

		if len(page) > 0 {
			return page, nil
		}
	}
}

// leftoversAt returns what settlements left at a deposit address.
//
// ok is false while a release is under way or was given up after transactions of its own. It is
// false too when a release ended so near to the block that its sweep may be above it.
func leftoversAt(
	ctx context.Context,
	tx ingest.Tx,
	network string,
	address chain.Address,
	payments []invoice.Payment,
	at chain.Ref,
) (k ingest.Leftovers, ok bool, err error) {
	live, err := tx.LiveTransactions(ctx, network, address)
	if err != nil || len(live) > 0 {
		return k, false, err
	}

	ids := make([]string, len(payments))
	for i, p := range payments {
		ids[i] = p.ID
	}

	settlements, err := tx.SettlementsOfPayments(ctx, ids)
	if err != nil {
		return k, false, err
	}

	k.Moved = map[string]bool{}

	for _, s := range settlements {
		switch {
		case s.Simulated || s.Network != network:
		case s.Status == settlement.Released && s.ReleasedAt.Before(at.Time.Add(-maxClockSkew)):
			k.Moved[s.PaymentID] = true
		case s.Status == settlement.Released,
			s.Status == settlement.Releasing,
			s.Status == settlement.Reverted,
			s.SweepID != "",
			s.FeeTx != "",
			s.TopUpTx != "",
			s.SweepTx != "":
			return k, false, nil
		}
	}

	residue, err := tx.Residue(ctx, network, address)
	k.Coin = residue.Amount

	return k, err == nil, err
}
