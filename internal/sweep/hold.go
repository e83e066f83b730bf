package sweep

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/settlement"
)

// holdOrFail holds or fails a group whose release cannot be planned. It returns every other cause unchanged.
func (p *planningRun) holdOrFail(ctx context.Context, g group, cause error) error {
	switch {
	case errors.Is(cause, fault.Invalid):
		if err := p.refusalStands(ctx, g[0].ID, cause); err != nil {
			return err
		}

		return p.fail(ctx, g, settlement.NotReleasable, cause)
	case fault.Code(cause) == "funds_missing":
		if p.now().Sub(g[len(g)-1].ConfirmedAt) < fundsGrace {
			return cause
		}

		return p.failMissing(ctx, g)
	case fault.Code(cause) == "uneconomic":
		return p.holdUneconomic(ctx, g)
	}

	return cause
}

// holdUneconomic holds a group of which too little is left to send. Where a transaction that is not on record took the
// rest, the group stays as it is until a person says what that was.
func (p *planningRun) holdUneconomic(ctx context.Context, g group) error {
	master, err := p.masterOf(ctx, g)
	if err != nil {
		return err
	}

	if waits, err := p.anyAwaitsPerson(ctx, master, g); err != nil || waits {
		return errors.Join(err, p.postpone(ctx, g, waitsForPerson))
	}

	return p.hold(ctx, g, settlement.Uneconomic, nil)
}

// hold holds a group for a reason, and publishes an event when the reason is new. required is what the master
// wallet must hold, in native base units; nil when it is not short. What is held for the reason already, and not due,
// stays as it is.
func (p *planningRun) hold(
	ctx context.Context,
	g group,
	reason settlement.Reason,
	required *chain.Amount,
) error {
	if required == nil {
		g = slices.DeleteFunc(slices.Clone(g), func(s settlement.Settlement) bool {
			return s.Status == settlement.Held && s.Reason == reason && s.DueAt.After(p.now())
		})
	}

	for some := range slices.Chunk(g, maxGroup) {
		if err := p.holdTogether(ctx, some, reason, required); err != nil {
			return err
		}
	}

	return nil
}

// holdTogether holds settlements in one transaction.
func (p *planningRun) holdTogether(
	ctx context.Context,
	g group,
	reason settlement.Reason,
	required *chain.Amount,
) error {
	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		fresh, err := p.lockUnchanged(ctx, tx, g)
		if err != nil {
			return err
		}

		for i := range fresh {
			s := &fresh[i]

			isNew, err := settlementstate.Hold(s, reason, required, p.now(), nextCheck(reason, p.now()))
			if err != nil {
				return err
			}

			if isNew {
				err = p.putTx(ctx, tx, s, event.SettlementHeld)
			} else {
				err = tx.PutSettlements(ctx, s)
			}

			if err != nil {
				return err
			}
		}

		return nil
	})
}

// nextCheck returns when a held settlement is planned again: after 1 minute when it waits for the master
// wallet, else after 5 minutes.
func nextCheck(reason settlement.Reason, now time.Time) time.Time { // spec 3.4.2
	if reason == settlement.InsufficientMasterBalance {
		return now.Add(time.Minute)
	}

	return now.Add(5 * time.Minute)
}

// fail fails a group that cannot be released as it is. cause is the error that says so; nil where the reason says all.
func (p *planningRun) fail(ctx context.Context, g group, reason settlement.Reason, cause error) error {
	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		fresh, err := p.lockUnchanged(ctx, tx, g)
		if err != nil {
			return err
		}

		for i := range fresh {
			if err := settlementstate.Fail(&fresh[i], reason, p.now(), time.Time{}); err != nil {
				return err
			}

			if cause != nil {
				fresh[i].ReasonMessage = txmgr.PublicText(cause)
			}

			if err := p.putTx(ctx, tx, &fresh[i], event.SettlementFailed); err != nil {
				return err
			}
		}

		return nil
	})
}

// lockUnchanged locks and returns the group as stored; nil when any of it changed since it was planned.
func (p *planningRun) lockUnchanged(ctx context.Context, tx settlement.Tx, g group) (group, error) {
	now, err := tx.SettlementsByID(ctx, g.ids())
	if err != nil {
		return nil, err
	}

	if len(now) != len(g) || slices.ContainsFunc(now, func(s settlement.Settlement) bool {
		i := slices.IndexFunc(g, func(planned settlement.Settlement) bool { return planned.ID == s.ID })
		return i < 0 || g[i].Version != s.Version
	}) {
		return nil, nil
	}

	return now, nil
}
