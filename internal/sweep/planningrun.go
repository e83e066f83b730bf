package sweep

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// fundsGrace is how long after its confirmation a deposit may seem to be missing: the node may lag.
const fundsGrace = 15 * time.Minute

// planningRun is one planning run of an account's releases on a network, under its lease. RPC happens between its
// updates, never in one.
type planningRun struct {
	*Sweeper
	network   chain.Network
	native    chain.Asset
	planner   chain.Sweeper
	accountID string
	// spendsCoins is set where one transaction spends the outputs of several addresses.
	spendsCoins bool
	lease       lease.Lease
}

// run plans what is due; did is false when another process plans for the account.
func (p *planningRun) run(ctx context.Context, work accountWork) (did bool, err error) {
	leases, err := p.config.Heartbeat.Take(ctx, "settle/"+p.network.Slug+"/"+p.accountID)
	if err != nil || len(leases) == 0 {
		return false, err
	}

	p.lease = leases[0]

	defer func() { // also while a panic passes through
		if releaseErr := p.config.Heartbeat.Release(ctx, p.lease); err == nil {
			err = releaseErr
		}
	}()

	err = p.plan(ctx, work)
	if errors.Is(err, fault.LeaseLost) {
		p.config.Log.WarnContext(ctx, "another process took over planning", "lease", p.lease.Name)
		return true, nil
	}

	return true, err
}

func (p *planningRun) plan(ctx context.Context, work accountWork) error {
	if err := p.attempt(ctx, "what waits", func() error { return p.sayWhy(ctx, work.waits) }); err != nil {
		return err
	}

	for _, r := range work.next {
		if err := p.attempt(ctx, r.ID, func() error { return p.resume(ctx, r) }); err != nil {
			return err
		}
	}

	for _, failed := range work.due {
		if failed.Status != settlement.Failed {
			continue
		}

		if err := p.attempt(ctx, failed.ID, func() error { return p.requeue(ctx, failed.ID) }); err != nil {
			return err
		}
	}

	started := map[chain.Address]bool{}
	for _, at := range keysOf(work.due, p.spendsCoins) {
		if started[at.address] && !p.spendsCoins {
			continue
		}

		if err := p.attempt(ctx, at.String(), func() error {
			began, err := p.start(ctx, at, at.of(work.due))

			started[at.address] = began
			if err != nil || !began {
				// What no release took, and nothing holds, is not due once more at once.
				why := ""
				if err != nil {
					why = txmgr.PublicText(err)
				}

				err = errors.Join(err, p.postpone(ctx, at.of(work.due), why))
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
		if err := leases.Check(ctx, tx, p.lease); err != nil {
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

// The reasons for which settlements are not released; see settlementstate.Wait.
const (
	waitsForPerson = "awaits_person: a transaction that is not on record took its money; see Engine.Acknowledge"
	waitsForCoins  = "coins_unread: the output that holds the payment was not read yet"

	waitsForRelease = "release_under_way: another release at the address is not over; an address has one at a time"
	waitsForStalled = "release_stalled: a release at the address cannot go on, as its payments left the chain; it is " +
		"over once its transactions are in a block, or others that take their place"
	waitsForBalance = "balance_unread: a payment to the address waits for its balance, which a release would hide"
)

// sayWhy records why settlements are left out of planning.
func (p *planningRun) sayWhy(ctx context.Context, waits []waiting) error {
	if len(waits) == 0 {
		return nil
	}

	why, ids := map[string]string{}, make([]string, len(waits))
	for i, w := range waits {
		why[w.ID], ids[i] = w.why, w.ID
	}

	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		all, err := tx.SettlementsByID(ctx, ids)
		if err != nil {
			return err
		}

		for _, s := range all {
			w := waiting{s, why[s.ID]}
			if s.SweepID != "" || !w.say(p.now()) {
				continue
			}

			if err := tx.PutSettlements(ctx, &w.Settlement); err != nil {
				return err
			}
		}

		return nil
	})
}

// postpone delays settlements that could not be planned, by a backoff that grows with their age, and records why
// unless that is not known.
func (p *planningRun) postpone(ctx context.Context, due group, why string) error {
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

			age := p.now().Sub(s.ConfirmedAt)

			s.DueAt = p.now().Add(backoff(age))
			if why != "" && age >= walletstate.WaitShownAfter {
				settlementstate.Wait(&s, why, s.ConfirmedAt)
			}

			if err := tx.PutSettlements(ctx, &s); err != nil {
				return err
			}
		}

		return nil
	})
}

// longestBackoff is the longest delay before an object is tried again.
const longestBackoff = 10 * time.Minute

// backoff returns the delay before an object of an age is tried again: a quarter of it, from 10 seconds
// to 10 minutes.
func backoff(age time.Duration) time.Duration { return min(max(age/4, 10*time.Second), longestBackoff) }
