package sweep

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// The bounds of one planning run.
const (
	maxDue  = 200
	mostDue = 64 * maxDue // that are looked through for some at an address that is free
	// fundsGrace is how long after its confirmation a deposit may seem to be missing: the node may lag.
	fundsGrace = 15 * time.Minute
)

// Step runs one planning run of a network. Live releases get their next transaction, what failed
// for replanning is queued again, and waiting settlements are released, held or failed.
//
// It returns false when nothing was due or another process plans. A failing release is postponed and logged;
// the error is the store's or the context's.
func (s *Sweeper) Step(ctx context.Context, network string) (did bool, err error) { // spec 3.4.1
	driver, err := s.registry.Driver(network)
	if err != nil {
		return false, err
	}

	planner, ok := driver.(chain.Sweeper)
	if !ok {
		return false, nil
	}

	_, spendsCoins := driver.(chain.CoinReader)

	next, due, err := s.dueWork(ctx, network, spendsCoins)
	if err != nil || (len(next) == 0 && len(due) == 0) {
		return false, err
	}

	run := &planningRun{Sweeper: s, network: driver.Network(), planner: planner, spendsCoins: spendsCoins}
	run.native, _ = run.network.Native()

	acquired, err := run.acquireLease(ctx)
	if err != nil || !acquired {
		return false, err
	}

	defer func() { // also while a panic passes through
		if releaseErr := s.config.Heartbeat.Release(ctx, run.lease); err == nil {
			err = releaseErr
		}
	}()

	err = run.plan(ctx, next, due)
	if errors.Is(err, fault.LeaseLost) {
		s.config.Log.WarnContext(ctx, "another process took over planning", "network", network)
		return true, nil
	}

	return true, err
}

// dueWork reads the releases that need their next transaction and the settlements that may be released, oldest first.
func (s *Sweeper) dueWork(
	ctx context.Context,
	network string,
	spendsCoins bool,
) (next []settlement.Sweep, due []settlement.Settlement, err error) {
	next, err = s.db.DueSweeps(ctx, network, s.now(), maxDue)
	if err != nil {
		return nil, nil, err
	}

	// Many that wait at a busy address hide nobody else.
	for limit := maxDue; ; limit *= 2 {
		due, err = s.db.DueSettlements(ctx, network, s.now(), limit)
		if err != nil {
			return nil, nil, err
		}

		all := len(due) < limit

		if !spendsCoins {
			due, err = s.withoutBusy(ctx, network, due)
			if err != nil {
				return nil, nil, err
			}
		}

		if len(due) > 0 || all || limit >= mostDue {
			return next, due[:min(len(due), maxDue)], nil
		}
	}
}

// withoutBusy leaves out the settlements at whose addresses a release is under way: an address has one at a time, so
// that none counts on the native coin of another. Coins are distinct and need no such rule. Tokens do not wait for a
// release that is stalled: their top-up brings the coin that its nonce needs.
func (s *Sweeper) withoutBusy(
	ctx context.Context,
	network string,
	due []settlement.Settlement,
) ([]settlement.Settlement, error) {
	live, err := s.db.SweepsAt(ctx, network, addressesOf(due))
	if err != nil {
		return nil, err
	}

	busy := map[chain.Address]bool{}
	unpaid := map[chain.Address]string{} // the asset that still waits where a release cannot go on

	for _, r := range live {
		busy[r.Deposit.Address] = true

		stalled, err := s.isStalled(ctx, &r)
		if err != nil {
			return nil, err
		}

		if stalled {
			unpaid[r.Deposit.Address] = r.AssetID
		}
	}

	return slices.DeleteFunc(due, func(d settlement.Settlement) bool {
		waits, stalled := unpaid[d.Deposit.Address]

		return busy[d.Deposit.Address] && (!stalled || waits == d.AssetID)
	}), nil
}

// addressesOf returns the deposit addresses of settlements, each once.
func addressesOf(all []settlement.Settlement) (addresses []chain.Address) {
	for _, s := range all {
		addresses = append(addresses, s.Deposit.Address)
	}

	slices.Sort(addresses)

	return slices.Compact(addresses)
}

// planningRun is one planning run under its lease. RPC happens between its updates, never in one.
type planningRun struct {
	*Sweeper
	network chain.Network
	native  chain.Asset
	planner chain.Sweeper
	// spendsCoins is set where one transaction spends the outputs of several addresses.
	spendsCoins bool
	lease       lease.Lease
}

// acquireLease takes the network's planning lease. Its owner is this run, not the process: two runs of one
// process exclude each other too.
func (p *planningRun) acquireLease(ctx context.Context) (acquired bool, err error) {
	owner, err := p.config.Heartbeat.Owner(ctx)
	if err != nil {
		return false, err
	}

	err = p.db.Update(ctx, func(ctx context.Context, tx settlement.Tx) (err error) {
		p.lease, acquired, err = lease.Take(ctx, tx, "settle/"+p.network.Slug, owner, p.now())

		return err
	})
	if err != nil {
		p.config.Heartbeat.Abandon("settle/"+p.network.Slug, owner)
	}

	return acquired, err
}

func (p *planningRun) plan(
	ctx context.Context,
	next []settlement.Sweep,
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
			if err != nil || !began {
				// What no release took, and nothing holds, is not due once more at once.
				err = errors.Join(err, p.postpone(ctx, at.of(due)))
			}

			return err
		}); err != nil {
			return err
		}
	}

	return nil
}

// candidates returns what may be released together with the due settlements of a key: all that waits at
// the address or, where coins are spent, of the owner.
func (p *planningRun) candidates(
	ctx context.Context,
	at sweepKey,
	due group,
) ([]settlement.Settlement, error) { // spec 2.8.8
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

// attempt runs f, and logs its error unless it must end the run. what names the object in the log.
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

// update runs a closure in a transaction that checks the lease.
func (p *planningRun) update(ctx context.Context, f func(ctx context.Context, tx settlement.Tx) error) error {
	err := p.db.Update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		if err := lease.Check(ctx, tx, p.lease); err != nil {
			return err
		}

		return f(ctx, tx)
	})
	if err != nil {
		return &storeError{err}
	}

	return nil
}

// requeue queues a settlement again that failed for replanning.
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

// postpone delays settlements that could not be planned, by a backoff that grows with their age.
func (p *planningRun) postpone(ctx context.Context, due group) error {
	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		waiting, err := tx.SettlementsByID(ctx, due.ids())
		if err != nil {
			return err
		}

		for _, s := range waiting {
			if (s.Status != settlement.Pending && s.Status != settlement.Held) || s.SweepID != "" ||
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

// backoff returns the delay before an object of an age is tried again: a quarter of it, from 10 seconds
// to 10 minutes.
func backoff(age time.Duration) time.Duration { return min(max(age/4, 10*time.Second), 10*time.Minute) }
