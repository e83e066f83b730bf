package sweep

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/settlement"
)

// resume queues the next transaction of a release whose last one is confirmed, planned at current fees.
func (p *planningRun) resume(ctx context.Context, r settlement.Sweep) error {
	found, err := p.db.SettlementsByID(ctx, r.SettlementIDs)
	if err != nil {
		return &storeError{err}
	}

	if over, err := p.endWithoutPayments(ctx, r, found); err != nil || over {
		return err
	}

	if why, err := p.walletWaits(ctx, r.Master.Address, found); err != nil || why != "" {
		return errors.Join(err, p.postponeSweep(ctx, r))
	}

	if over, err := p.endRefused(ctx, r); err != nil || over {
		return err
	}

	asset, _ := p.network.AssetByID(r.AssetID)

	var residue residues
	if !p.spendsCoins {
		if _, residue, err = p.carryAndResidue(ctx, r.Owner, r.Deposit.Address, asset.ID); err != nil {
			return err
		}
	}

	planned := r
	planned.Owed = r.Owed.Add(residue.asset.Owed)

	if planned.ResidueOut, err = p.gasOf(ctx, &r, r.ResidueOut); err != nil {
		return err
	}

	if !planned.Owed.IsZero() && !planned.Owed.Less(r.Amount) {
		return p.abandon(ctx, r, settlement.Replanning) // earlier sweeps took all of it
	}

	steps, err := p.planRemaining(ctx, &planned, found, asset)
	if err != nil {
		return p.stopOrPostpone(ctx, r, found, err)
	}

	p.refusals.Delete(r.ID)

	required := allFromMaster(steps, r.Master.Address, p.native.ID)
	if !required.IsZero() {
		if err := p.refreshMaster(ctx, r.Owner, r.Master); err != nil {
			return errors.Join(err, p.postponeSweep(ctx, r))
		}
	}

	short, err := p.storeNextStep(ctx, r, steps, required, residue)
	if err == nil && short {
		return p.postponeSweep(ctx, r)
	}

	return err
}

// endWithoutPayments ends a release that goes on for nobody, and one of native coin that lost one of its payments: the
// address owes what it cost that one, and the others are planned anew. A release that lost all of its payments waits
// for them, unless others wait for it. over is false where it goes on.
func (p *planningRun) endWithoutPayments(
	ctx context.Context,
	r settlement.Sweep,
	found group,
) (over bool, err error) {
	if len(found) == 0 {
		return true, p.abandon(ctx, r, settlement.Replanning)
	}

	if _, orphaned := orphanedLast(found); orphaned {
		others, err := p.othersWait(ctx, r)
		if err != nil {
			return true, err
		}

		if others || !p.waitsForPayments(found) {
			return true, p.abandon(ctx, r, settlement.Replanning)
		}

		return true, p.postponeSweep(ctx, r)
	}

	lost := func(s settlement.Settlement) bool { return isOrphaned(s) && s.SweepID == r.ID }
	if p.isNative(&r) && slices.ContainsFunc(found, lost) {
		return true, p.abandon(ctx, r, settlement.Replanning)
	}

	return false, nil
}

// planRemaining returns the steps of a release that are not confirmed yet.
func (p *planningRun) planRemaining(
	ctx context.Context,
	r *settlement.Sweep,
	g group,
	asset chain.Asset,
) ([]chain.SweepStep, error) {
	coins, err := p.coinsOf(ctx, g)
	if err != nil {
		return nil, err
	}

	return p.planSteps(ctx, r, g, coins, asset, confirmedKinds(r))
}

// stopOrPostpone abandons a release whose remaining steps cannot be planned for good, and postpones
// it otherwise.
func (p *planningRun) stopOrPostpone(
	ctx context.Context,
	r settlement.Sweep,
	g group,
	cause error,
) error {
	switch {
	case errors.Is(cause, fault.Invalid):
		if err := p.refusalStands(ctx, r.ID, cause); err != nil {
			return errors.Join(err, p.postponeSweep(ctx, r))
		}

		return p.abandonFor(ctx, r, settlement.NotReleasable, cause)
	case fault.Code(cause) == "funds_missing" && p.now().Sub(r.CreatedAt) >= fundsGrace:
		return p.abandonMissing(ctx, r, g)
	case fault.Code(cause) == "uneconomic" && hasStep(&r, chain.StepSweep, wallet.Failed):
		// The minimum balance of an account that stays open exceeds what it holds.
		return p.abandonFor(ctx, r, settlement.TransactionFailed, cause)
	case fault.Code(cause) == "uneconomic":
		// Its other payments are gone, or fees rose: what it has left is held, or goes with what comes to the address.
		return p.abandon(ctx, r, settlement.Replanning)
	}

	return errors.Join(cause, p.postponeSweep(ctx, r))
}

// storeNextStep queues the first of the steps in one transaction, unless the release changed since
// it was read. It returns true when the master wallet does not cover required (native base units).
func (p *planningRun) storeNextStep(
	ctx context.Context,
	r settlement.Sweep,
	steps []chain.SweepStep,
	required chain.Amount,
	residue residues,
) (short bool, err error) {
	err = p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		short = false

		now, err := tx.Sweep(ctx, r.ID)
		if err != nil || now.Version != r.Version {
			return err
		}

		owed, unclaimed := residue.asset.Owed, residue.asset.Unclaimed
		if !owed.IsZero() || len(unclaimed) > 0 {
			if unchanged, err := p.chargeResidue(ctx, tx, &now, residue); err != nil || !unchanged {
				return err
			}

			now.Owed, now.Claims = now.Owed.Add(owed), addBrought(now.Claims, unclaimed...)
		}

		if !required.IsZero() {
			available, err := p.availableTo(ctx, tx, &r)
			if err != nil {
				return err
			}

			if available.Less(required) {
				short = true
				return nil
			}
		}

		return p.enqueue(ctx, tx, &now, steps)
	})

	return short, err
}

// availableTo returns the master wallet's native balance less the reservations of other objects, in
// base units.
func (p *planningRun) availableTo(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
) (chain.Amount, error) {
	b, _, err := tx.BalanceForUpdate(ctx, r.Network, r.Master.Address, p.native.ID)
	if err != nil {
		return chain.Amount{}, err
	}

	others := b.Reserved
	for _, own := range b.Reservations {
		if own.ObjectID == r.ID {
			others = others.Sub(own.Amount)
		}
	}

	return b.OnChain.SubFloor(others), nil
}

// postponeSweep delays a release that cannot go on now, by a backoff that grows with its age.
func (p *planningRun) postponeSweep(ctx context.Context, r settlement.Sweep) error {
	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		now, err := tx.Sweep(ctx, r.ID)
		if err != nil || now.Version != r.Version {
			return err
		}

		now.DueAt = p.now().Add(backoff(p.now().Sub(r.CreatedAt)))

		return tx.PutSweep(ctx, &now)
	})
}
