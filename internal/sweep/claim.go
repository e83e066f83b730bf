package sweep

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A sweep may stand whose payment is gone: on this branch it moved what other payments brought. Where earlier sweeps
// took all of a deposit nothing is left to send, so its release has no transaction: it claims what those brought, and
// is over at once. It is taken back when one of them leaves its block.

// plannable returns those of a group that can be planned now, with the carry and the residue to plan them on.
// Those of which earlier sweeps took everything are released first.
func (p *planningRun) plannable(
	ctx context.Context,
	g group,
	asset chain.Asset,
	master chain.Party,
) (left group, carry settlement.CarriedFee, residue residues, err error) {
	owner, address := g[0].Owner, g[0].Deposit.Address

	carry, residue, err = p.carryAndResidue(ctx, owner, address, asset.ID)
	if err != nil {
		return nil, carry, residue, err
	}

	if len(residue.asset.Unclaimed) > 0 {
		if g, err = p.claim(ctx, g, asset, master); err != nil || len(g) == 0 {
			return nil, carry, residue, err
		}

		// What is left is planned on what is on record after that.
		if carry, residue, err = p.carryAndResidue(ctx, owner, address, asset.ID); err != nil {
			return nil, carry, residue, err
		}
	}

	waits, err := p.isBehindStalled(ctx, address, asset)
	if err != nil {
		return nil, carry, residue, err
	}

	if waits {
		return nil, carry, residue, p.postpone(ctx, g, waitsForStalled)
	}

	return g, carry, residue, nil
}

// isBehindStalled reports whether native coin of an address waits for a release that is stalled there; see withoutBusy,
// which lets it claim.
func (p *planningRun) isBehindStalled(
	ctx context.Context,
	at chain.Address,
	asset chain.Asset,
) (bool, error) {
	if asset.ID != p.native.ID || p.spendsCoins {
		return false, nil
	}

	live, err := p.db.SweepsAt(ctx, p.network.Slug, []chain.Address{at})
	if err != nil {
		return false, &storeError{err}
	}

	return len(live) > 0, nil
}

// claim releases those of a group of which earlier sweeps took everything, and returns the others.
func (p *planningRun) claim(
	ctx context.Context,
	g group,
	asset chain.Asset,
	master chain.Party,
) (left group, err error) {
	for _, s := range g {
		claimed := false

		err := p.update(ctx, func(ctx context.Context, tx settlement.Tx) (err error) {
			claimed, err = p.claimTx(ctx, tx, s, asset, master)
			return err
		})
		if err != nil {
			return nil, err
		}

		if !claimed {
			left = append(left, s)
		}
	}

	return left, nil
}

// claimTx releases a settlement with what earlier sweeps brought of it. claimed is false when they left some of it at
// its address, or nothing of what they brought is unclaimed.
func (p *planningRun) claimTx(
	ctx context.Context,
	tx settlement.Tx,
	s settlement.Settlement,
	asset chain.Asset,
	master chain.Party,
) (claimed bool, err error) {
	fresh, err := p.lockUnchanged(ctx, tx, group{s})
	if err != nil || fresh == nil {
		return false, err
	}

	residue, err := p.lockResidues(ctx, tx, s.Deposit.Address, asset.ID)
	if err != nil {
		return false, err
	}

	own := leftOfGross(s)
	if len(residue.asset.Unclaimed) == 0 || residue.asset.Owed.Less(own) {
		return false, nil
	}

	r := p.newSweep(fresh, asset, master, residue)
	r.Owed, r.Claims, r.Done = own, firstBrought(residue.asset.Unclaimed, own), true

	w := &sweepUpdate{Sweeper: p.Sweeper, tx: tx, release: &r, group: fresh, events: map[string]event.Type{}}

	return true, w.releaseClaim(ctx)
}

// releaseClaim releases the settlement of a release without transactions, with what that claims. It names the newest
// sweep that brought some of it.
func (w *sweepUpdate) releaseClaim(ctx context.Context) error {
	s, r := &w.group[0], w.release

	newest, err := w.tx.Sweep(ctx, r.Claims[len(r.Claims)-1].SweepID)
	if err != nil {
		return err
	}

	if err := settlementstate.Assign(s, r.ID, r.Master.Address); err != nil {
		return err
	}

	if err := settlementstate.Start(s, chain.Amount{}); err != nil {
		return err
	}

	if err := settlementstate.Release(s, r.Claimed(), w.now()); err != nil {
		return err
	}

	if sweep := sweptStep(&newest); sweep != nil {
		s.SweepTx = sweep.TxHash
	}

	s.RequiredNative = nil
	w.events[s.ID] = event.SettlementReleased

	if err := errors.Join(
		w.addResidue(ctx, r.AssetID, r.Owed, chain.Amount{}),
		w.changeUnclaimed(ctx, func(unclaimed []settlement.Brought) []settlement.Brought {
			return lessBrought(unclaimed, r.Claims...)
		}),
		w.setClaimed(ctx, true),
		w.addCarry(ctx),
	); err != nil {
		return err
	}

	return w.save(ctx)
}

// setClaimed keeps on record at its address whether a release without transactions has a claim.
func (w *sweepUpdate) setClaimed(ctx context.Context, claimed bool) error {
	r := w.release

	row, err := lockResidue(ctx, w.tx, r.Network, r.Deposit.Address)
	if err != nil {
		return err
	}

	row.ClaimedBy = slices.DeleteFunc(slices.Clone(row.ClaimedBy), func(id string) bool { return id == r.ID })
	if claimed {
		row.ClaimedBy = append(row.ClaimedBy, r.ID)
	}

	return w.tx.PutResidue(ctx, &row)
}

// revertClaims takes the releases without transactions back that have what the sweep brought, the newest first.
func (w *sweepUpdate) revertClaims(ctx context.Context) error {
	row, err := lockResidue(ctx, w.tx, w.release.Network, w.release.Deposit.Address)
	if err != nil {
		return err
	}

	for _, id := range slices.Backward(row.ClaimedBy) {
		r, err := w.tx.Sweep(ctx, id)
		if err != nil {
			return err
		}

		if broughtBy(r.Claims, w.release.ID).IsZero() {
			continue
		}

		if err := w.revertClaim(ctx, r); err != nil {
			return err
		}
	}

	return nil
}

// revertClaim reverts the settlement of a release without transactions, and queues it again.
func (w *sweepUpdate) revertClaim(ctx context.Context, r settlement.Sweep) error {
	c, err := w.updateOf(ctx, w.tx, r)
	if err != nil {
		return err
	}

	s := &c.group[0]
	c.events[s.ID] = event.SettlementReverted

	if err := errors.Join(
		c.returnClaim(ctx),
		settlementstate.Revert(s, ""),
		c.save(ctx),
		s.Return(false, false, w.now()),
		w.tx.PutSettlements(ctx, s),
	); err != nil {
		return err
	}

	if i := slices.Index(w.group.ids(), s.ID); i >= 0 { // an earlier release of it has one under way again
		w.group[i] = *s
	}

	return nil
}

// returnClaim gives back what a release without transactions claimed.
func (w *sweepUpdate) returnClaim(ctx context.Context) error {
	return errors.Join(w.returnOwed(ctx), w.setClaimed(ctx, false))
}
