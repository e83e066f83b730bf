package sweep

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/settlement"
)

// What a sweep brought for a payment that is gone was another payment's, if it arrived at all. It is unclaimed until
// that payment is back, or a later release of its address claims it. So every base unit that reached the master
// wallet is released by one settlement.

// setUnclaimed replaces what a sweep brought for payments that are gone, in base units of the asset, and updates the
// address row. Where that is less than what later releases have claimed of it, they have claimed the difference no
// more.
func (w *sweepUpdate) setUnclaimed(ctx context.Context, step *settlement.Step, amount chain.Amount) error {
	before := step.Unclaimed
	if amount == before {
		return nil
	}

	free, err := w.unclaimedOf(ctx)
	if err != nil {
		return err
	}

	claimed := before.SubFloor(free)
	if err := w.takeBackClaims(ctx, claimed.SubFloor(amount)); err != nil {
		return err
	}

	step.Unclaimed = amount
	own := settlement.Brought{SweepID: w.release.ID, Amount: free}
	left := settlement.Brought{SweepID: w.release.ID, Amount: amount.SubFloor(claimed)}

	return w.changeUnclaimed(ctx, func(unclaimed []settlement.Brought) []settlement.Brought {
		return addBrought(lessBrought(unclaimed, own), left)
	})
}

// takeBackUnclaimed has nobody claim what a sweep brought for payments that are gone, while no block holds the sweep. A
// release that claimed it already and is signed behind the sweep keeps it until that is dead.
func (w *sweepUpdate) takeBackUnclaimed(ctx context.Context, step *settlement.Step) error {
	if err := w.revertClaims(ctx); err != nil {
		return err
	}

	claimed, err := w.isClaimed(ctx, step)
	if err != nil || claimed {
		return err
	}

	return w.setUnclaimed(ctx, step, chain.Amount{})
}

// dropUnclaimed takes back what a sweep that failed brought for payments that are gone, from the releases under way
// that claimed it too: nothing of it is at the master wallet.
func (w *sweepUpdate) dropUnclaimed(ctx context.Context, step *settlement.Step) error {
	return errors.Join(w.revertClaims(ctx), w.setUnclaimed(ctx, step, chain.Amount{}))
}

// takeBackClaims takes an amount, in base units of the asset, off what releases under way at its address have claimed
// of the sweep. They all are: their transactions come after it.
func (w *sweepUpdate) takeBackClaims(ctx context.Context, amount chain.Amount) error {
	if amount.IsZero() {
		return nil
	}

	r := w.release

	others, err := w.tx.SweepsAt(ctx, r.Network, []chain.Address{r.Deposit.Address})
	if err != nil {
		return err
	}

	for i := range others {
		other := &others[i]

		took := chaindata.Min(broughtBy(other.Claims, r.ID), amount)
		if took.IsZero() {
			continue
		}

		amount = amount.Sub(took)
		other.Claims = lessBrought(other.Claims, settlement.Brought{SweepID: r.ID, Amount: took})

		if err := w.tx.PutSweep(ctx, other); err != nil {
			return err
		}
	}

	return nil
}

// unreleased returns what of all that a sweep brought, and of what its release claimed, no settlement shows.
func (w *sweepUpdate) unreleased(arrived chain.Amount) chain.Amount {
	return arrived.Add(w.release.Claimed()).SubFloor(w.group.released())
}

// broughtForOthers returns what arrived for settlements that left the release since its sweep was made, as far as the
// address owes it or later releases have claimed it. A fork had taken that sweep back.
func (w *sweepUpdate) broughtForOthers(
	ctx context.Context,
	step *settlement.Step,
	arrived chain.Amount,
) (chain.Amount, error) {
	row, err := lockResidue(ctx, w.tx, w.release.Network, w.release.Deposit.Address)
	if err != nil {
		return chain.Amount{}, err
	}

	of := residueOf(row, w.release.AssetID, w.nativeID())

	beyond := arrived.Add(w.release.Claimed())
	for _, s := range w.group {
		beyond = beyond.SubFloor(leftOfGross(s))
	}

	left := chaindata.Min(w.release.Amount.SubFloor(w.group.gross()), beyond)

	return chaindata.Min(
		left,
		of.Owed.Add(step.Unclaimed.SubFloor(broughtBy(of.Unclaimed, w.release.ID))),
	), nil
}

// changeUnclaimed is changeUnclaimed of the release.
func (w *sweepUpdate) changeUnclaimed(
	ctx context.Context,
	change func(unclaimed []settlement.Brought) []settlement.Brought,
) error {
	return changeUnclaimed(ctx, w.tx, w.release, w.nativeID(), change)
}

// changeUnclaimed stores what change makes of what is unclaimed of the asset of a release at its address.
func changeUnclaimed(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	nativeID string,
	change func(unclaimed []settlement.Brought) []settlement.Brought,
) error {
	row, err := lockResidue(ctx, tx, r.Network, r.Deposit.Address)
	if err != nil {
		return err
	}

	of := residueOf(row, r.AssetID, nativeID)

	unclaimed := change(of.Unclaimed)
	if slices.Equal(unclaimed, of.Unclaimed) {
		return nil
	}

	of.Unclaimed = unclaimed
	setResidueOf(&row, of, nativeID)

	return tx.PutResidue(ctx, &row)
}

// returnOwed gives what a release without success bore back to the row of its address.
func (w *sweepUpdate) returnOwed(ctx context.Context) error {
	r := w.release
	owed, claims := r.Owed, r.Claims
	r.Owed, r.Claims = chain.Amount{}, nil

	if owed.IsZero() && len(claims) == 0 {
		return nil
	}

	if err := w.addResidue(ctx, r.AssetID, chain.Amount{}, owed); err != nil {
		return err
	}

	return w.changeUnclaimed(ctx, func(unclaimed []settlement.Brought) []settlement.Brought {
		return addBrought(unclaimed, claims...)
	})
}

// isClaimed reports whether a later release claimed what a sweep brought for payments that were gone.
func (w *sweepUpdate) isClaimed(ctx context.Context, step *settlement.Step) (bool, error) {
	if step.Unclaimed.IsZero() {
		return false, nil
	}

	free, err := w.unclaimedOf(ctx)

	return free.Less(step.Unclaimed), err
}

// unclaimedOf returns what nobody claims yet of what the sweep of a release brought for payments that are gone, in base
// units.
func (w *sweepUpdate) unclaimedOf(ctx context.Context) (chain.Amount, error) {
	row, err := lockResidue(ctx, w.tx, w.release.Network, w.release.Deposit.Address)

	return broughtBy(residueOf(row, w.release.AssetID, w.nativeID()).Unclaimed, w.release.ID), err
}

// anyClaimed reports whether later releases claimed what a sweep of a release brought.
func (s *Sweeper) anyClaimed(ctx context.Context, tx settlement.Tx, r settlement.Sweep) (bool, error) {
	w := &sweepUpdate{Sweeper: s, tx: tx, release: &r}

	for i := range r.Steps {
		if claimed, err := w.isClaimed(ctx, &r.Steps[i]); err != nil || claimed {
			return claimed, err
		}
	}

	return false, nil
}

// claimed returns what a settlement that is back has of what its sweep brought, in base units. The last of the
// release that is back has all of it: its amount may be another one now.
func (w *sweepUpdate) claimed(back settlement.Settlement, step *settlement.Step) chain.Amount {
	i := slices.IndexFunc(w.group, func(s settlement.Settlement) bool { return s.ID == back.ID })
	w.group[i] = back

	if !slices.ContainsFunc(w.group, isOrphaned) {
		return step.Unclaimed
	}

	return chaindata.Min(w.group.net(step.Unclaimed.Add(w.group.released()))[i], step.Unclaimed)
}

// sweptStep returns the sweep of a release that is confirmed and counted; nil when there is none.
func sweptStep(r *settlement.Sweep) *settlement.Step {
	i := slices.IndexFunc(r.Steps, func(s settlement.Step) bool {
		return s.Kind == chain.StepSweep && s.Recorded && s.State == wallet.Confirmed
	})
	if i < 0 {
		return nil
	}

	return &r.Steps[i]
}

// broughtBy returns what a sweep brought, in base units.
func broughtBy(all []settlement.Brought, sweepID string) chain.Amount {
	i := slices.IndexFunc(all, func(b settlement.Brought) bool { return b.SweepID == sweepID })
	if i < 0 {
		return chain.Amount{}
	}

	return all[i].Amount
}

// addBrought returns what sweeps brought, and more of it. One that had brought nothing comes last.
func addBrought(all []settlement.Brought, more ...settlement.Brought) []settlement.Brought {
	all = slices.Clone(all)

	for _, b := range more {
		i := slices.IndexFunc(all, func(of settlement.Brought) bool { return of.SweepID == b.SweepID })

		switch {
		case i >= 0:
			all[i].Amount = all[i].Amount.Add(b.Amount)
		case !b.Amount.IsZero():
			all = append(all, b)
		}
	}

	return all
}

// lessBrought returns what sweeps brought, without less of it.
func lessBrought(all []settlement.Brought, less ...settlement.Brought) []settlement.Brought {
	all = slices.Clone(all)

	for _, b := range less {
		i := slices.IndexFunc(all, func(of settlement.Brought) bool { return of.SweepID == b.SweepID })
		if i < 0 {
			continue
		}

		if all[i].Amount = all[i].Amount.SubFloor(b.Amount); all[i].Amount.IsZero() {
			all = slices.Delete(all, i, i+1)
		}
	}

	return all
}

// firstBrought returns what sweeps brought, the oldest first, up to an amount in base units.
func firstBrought(all []settlement.Brought, upTo chain.Amount) (first []settlement.Brought) {
	for _, b := range all {
		if b.Amount = chaindata.Min(b.Amount, upTo); !b.Amount.IsZero() {
			first = append(first, b)
			upTo = upTo.Sub(b.Amount)
		}
	}

	return first
}
