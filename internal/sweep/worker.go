package sweep

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// The bounds of one planning run.
const (
	maxDue      = 200
	maxReleases = 1000
	// fundsGrace is how long after its confirmation a deposit may seem to be missing: the node may lag.
	fundsGrace = 15 * time.Minute
)

// Step is one planning run of a network: releases under way get their next transaction, what failed
// for replanning goes back into the queue, and what waits is released, held or failed. did is false
// when nothing was due or another process plans. What goes wrong with one release delays that one
// and is logged; the error is the store's or the context's.
func (s *Sweeper) Step(ctx context.Context, network string) (did bool, err error) {
	driver, err := s.registry.Driver(network)
	if err != nil {
		return false, err
	}

	planner, ok := driver.(chain.Sweeper)
	if !ok {
		return false, nil
	}

	live, err := s.db.LiveReleases(ctx, network, maxReleases)
	if err != nil {
		return false, err
	}

	due, err := s.db.DueSettlements(ctx, network, s.now(), maxDue)
	if err != nil {
		return false, err
	}

	_, spendsCoins := driver.(chain.CoinReader)

	var next []settlement.Release

	busy := map[chain.Address]bool{}
	for _, r := range live {
		busy[r.Deposit.Address] = true
		if !isRunning(&r) && !s.now().Before(r.DueAt) {
			next = append(next, r)
		}
	}
	// One release of an address at a time, so that none counts on the native coin of another. Coins
	// are told apart.
	due = slices.DeleteFunc(
		due, func(d settlement.Settlement) bool { return busy[d.Deposit.Address] && !spendsCoins },
	)
	if len(next) == 0 && len(due) == 0 {
		return false, nil
	}

	p := &planningRun{Sweeper: s, network: driver.Network(), planner: planner, spendsCoins: spendsCoins}
	p.native, _ = p.network.Native()
	held := false
	// The owner is this run, not this process: two runs of one process exclude each other too.
	owner := s.config.Process + "/" + s.config.IDs.Next()

	err = s.db.Update(ctx, func(ctx context.Context, tx settlement.Tx) (err error) {
		p.lease, held, err = lease.Take(ctx, tx, "settle/"+network, owner, s.now(), s.config.LeaseFor)
		return err
	})
	if err != nil || !held {
		return false, err
	}

	err = p.plan(ctx, next, due)
	if errors.Is(err, fault.LeaseLost) {
		s.config.Log.WarnContext(ctx, "another process took over planning", "network", network)
		return true, nil
	}

	if release := s.db.Update(
		ctx, func(ctx context.Context, tx settlement.Tx) error { return lease.Release(ctx, tx, p.lease) },
	); err == nil {
		err = release
	}

	return true, err
}

// run is one planning run under its lease. All RPC happens between its updates, never in one.
type planningRun struct {
	*Sweeper
	network chain.Network
	native  chain.Asset
	planner chain.Sweeper
	// spendsCoins: the network spends outputs, and one transaction moves the deposits of several addresses.
	spendsCoins bool
	lease       lease.Lease
}

func (p *planningRun) plan(
	ctx context.Context,
	next []settlement.Release,
	due []settlement.Settlement,
) error {
	for _, r := range next {
		if err := p.attempt(ctx, r.ID, func() error { return p.resume(ctx, r) }); err != nil {
			return err
		}
	}

	for _, failed := range due {
		if failed.Status != settlement.Failed {
			continue
		}

		if err := p.attempt(ctx, failed.ID, func() error { return p.requeue(ctx, failed.ID) }); err != nil {
			return err
		}
	}

	started := map[chain.Address]bool{}
	for _, at := range keysOf(due, p.spendsCoins) {
		if started[at.address] && !p.spendsCoins {
			continue
		}

		if err := p.attempt(ctx, at.String(), func() error {
			began, err := p.start(ctx, at, at.of(due))

			started[at.address] = began
			if err != nil {
				err = errors.Join(err, p.postpone(ctx, at.of(due)))
			}

			return err
		}); err != nil {
			return err
		}
	}

	return nil
}

// waiting returns what may be released together with the settlements that are due at a place: all
// that waits at the address, or, where coins are spent, of the owner.
func (p *planningRun) candidates(
	ctx context.Context,
	at releaseKey,
	due group,
) ([]settlement.Settlement, error) {
	if !p.spendsCoins {
		return p.db.SettlementsAt(ctx, p.network.Slug, at.address, at.assetID)
	}

	others, err := p.db.Settlements(ctx, settlement.Filter{
		Owner:    at.owner,
		Statuses: []settlement.Status{settlement.Pending, settlement.Held},
		Networks: []string{p.network.Slug},
		Limit:    maxDue,
	})
	if err != nil {
		return nil, err
	}

	all := slices.Clone(due)
	for _, s := range others {
		if s.AssetID == at.assetID &&
			!slices.ContainsFunc(due, func(d settlement.Settlement) bool { return d.ID == s.ID }) {
			all = append(all, s)
		}
	}

	return all, nil
}

// each runs one piece of work, and passes on only what must end the run.
func (p *planningRun) attempt(ctx context.Context, what string, f func() error) error {
	err := f()
	if err == nil {
		return nil
	}

	if ctx.Err() != nil || errors.Is(err, fault.LeaseLost) {
		return err
	}

	if _, stored := errors.AsType[*storeError](err); stored && errors.Is(err, fault.Unavailable) {
		return err
	}

	p.config.Log.WarnContext(
		ctx, "a release could not be planned",
		"network", p.network.Slug, "what", what, "code", fault.Code(err),
	)

	return nil
}

// storeError marks an error that came out of an update.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// write runs a closure under the lease, and prolongs it.
func (p *planningRun) update(ctx context.Context, f func(ctx context.Context, tx settlement.Tx) error) error {
	err := p.db.Update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		if err := lease.Prolong(ctx, tx, p.lease, p.now().Add(p.config.LeaseFor)); err != nil {
			return err
		}

		return f(ctx, tx)
	})
	if err != nil {
		return &storeError{err}
	}

	return nil
}

// giveBack returns what failed for replanning to the queue.
func (p *planningRun) requeue(ctx context.Context, settlementID string) error {
	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		g, err := tx.SettlementsByID(ctx, []string{settlementID})
		if err != nil || len(g) == 0 || g[0].Status != settlement.Failed ||
			g[0].Reason != settlement.Replanning {
			return err
		}

		if err := g[0].Return(false, false, p.now()); err != nil {
			return err
		}

		return tx.PutSettlements(ctx, &g[0])
	})
}

// postpone puts off what could not be planned for want of an answer, for a while that grows with its age.
func (p *planningRun) postpone(ctx context.Context, due group) error {
	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		waiting, err := tx.SettlementsByID(ctx, due.ids())
		if err != nil {
			return err
		}

		for _, s := range waiting {
			if (s.Status != settlement.Pending && s.Status != settlement.Held) || s.ReleaseID != "" ||
				s.DueAt.IsZero() ||
				s.DueAt.After(p.now()) {
				continue
			}

			s.DueAt = p.now().Add(backoff(p.now().Sub(s.ConfirmedAt)))
			if err := tx.PutSettlements(ctx, &s); err != nil {
				return err
			}
		}

		return nil
	})
}

// backoff is how long to wait before something of an age is tried again: a quarter of it, from 10
// seconds to 10 minutes.
func backoff(age time.Duration) time.Duration { return min(max(age/4, 10*time.Second), 10*time.Minute) }

// proceed makes the next transaction of a release whose last one is confirmed, planned anew at current fees.
func (p *planningRun) resume(ctx context.Context, r settlement.Release) error {
	found, err := p.db.SettlementsByID(ctx, r.SettlementIDs)
	if err != nil {
		return &storeError{err}
	}

	if len(found) == 0 {
		return p.abandon(ctx, r, settlement.Replanning)
	}

	if lost, ok := orphanedLast(found); ok {
		if p.now().Sub(lost.FailedAt) >= orphanWait {
			return p.abandon(ctx, r, settlement.Replanning)
		}

		return p.postponeRelease(ctx, r)
	}

	asset, _ := p.network.AssetByID(r.AssetID)

	var residue settlement.Residue
	if asset.ID == p.native.ID && !p.spendsCoins {
		if _, residue, err = p.carryAndResidue(ctx, r.Owner, r.Deposit.Address); err != nil {
			return err
		}
	}

	coins, err := p.coinsOf(ctx, found)

	var steps []chain.ReleaseStep
	if err == nil {
		steps, err = p.planSteps(
			ctx, &r, group(found).withResidueOwed(residue.Owed), coins, asset, confirmedKinds(&r),
		)
	}

	switch {
	case err == nil:
	case errors.Is(err, fault.Invalid):
		return p.abandon(ctx, r, settlement.NotReleasable)
	case fault.Code(err) == "funds_missing" && p.now().Sub(r.CreatedAt) >= fundsGrace:
		return p.abandon(ctx, r, settlement.FundsMissing)
	case fault.Code(err) == "uneconomic" && hasStep(&r, chain.StepSweep, wallet.Failed):
		// what has to stay in an account that is left open is more than there is
		return p.abandon(ctx, r, settlement.TransactionFailed)
	default:
		return errors.Join(err, p.postponeRelease(ctx, r))
	}

	needs := allFromMaster(steps, r.Master.Address, p.native.ID)
	if !needs.IsZero() {
		if err := p.refreshMaster(ctx, r.Owner, r.Master); err != nil {
			return errors.Join(err, p.postponeRelease(ctx, r))
		}
	}

	short := false

	err = p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		short = false

		now, err := tx.Release(ctx, r.ID)
		if err != nil || now.Version != r.Version {
			return err
		}

		if !residue.Owed.IsZero() {
			g, err := tx.SettlementsByID(ctx, now.SettlementIDs)
			if err != nil || len(g) == 0 {
				return err
			}

			if as, err := p.chargeResidue(ctx, tx, &now, g, residue); err != nil || !as {
				return err
			}
		}

		if !needs.IsZero() {
			b, _, err := tx.BalanceForUpdate(ctx, r.Network, r.Master.Address, p.native.ID)
			if err != nil {
				return err
			}

			others := b.Reserved
			for _, own := range b.Reservations {
				if own.ObjectID == r.ID {
					others = others.Sub(own.Amount)
				}
			}

			if b.OnChain.SubFloor(others).Less(needs) {
				short = true
				return nil
			}
		}

		return p.enqueue(ctx, tx, &now, steps)
	})
	if err == nil && short {
		return p.postponeRelease(ctx, r)
	}

	return err
}

// orphanWait is how long a release waits for the payment of its last settlement to come back: longer
// than it takes for a payment that is neither in the chain nor in the pool to be dropped.
const orphanWait = 48 * time.Hour

// waits reports whether the payments of all settlements of a release left the chain, and returns
// the one that left last.
func orphanedLast(g group) (last settlement.Settlement, ok bool) {
	for _, s := range g {
		if s.Status != settlement.Failed || s.Reason != settlement.PaymentOrphaned {
			return settlement.Settlement{}, false
		}

		if s.FailedAt.After(last.FailedAt) {
			last = s
		}
	}

	return last, true
}

// later puts a release that cannot go on now off for a while that grows with its age.
func (p *planningRun) postponeRelease(ctx context.Context, r settlement.Release) error {
	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		now, err := tx.Release(ctx, r.ID)
		if err != nil || now.Version != r.Version {
			return err
		}

		now.DueAt = p.now().Add(backoff(p.now().Sub(r.CreatedAt)))

		return tx.PutRelease(ctx, &now)
	})
}

// end gives a release up between two transactions.
func (p *planningRun) abandon(ctx context.Context, r settlement.Release, reason settlement.Reason) error {
	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		now, err := tx.Release(ctx, r.ID)
		if err != nil || now.Version != r.Version {
			return err
		}

		g, err := tx.SettlementsByID(ctx, now.SettlementIDs)
		if err != nil {
			return err
		}

		w := &releaseUpdate{Sweeper: p.Sweeper, tx: tx, release: &now, group: g, events: map[string]event.Type{}}
		if err := w.abandon(ctx, reason); err != nil {
			return err
		}

		return w.save(ctx)
	})
}
