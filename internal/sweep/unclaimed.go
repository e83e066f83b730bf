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

	free, err := w.unclaimedOf(ctx, step)
	if err != nil {
		return err
	}

	missing := before.Sub(free).SubFloor(amount)
	if err := w.takeBackClaims(ctx, missing); err != nil {
		return err
	}

	step.Unclaimed = amount

	return changeUnclaimed(ctx, w.tx, w.release, w.nativeID(), func(of *settlement.TokenResidue) {
		of.Unclaimed = of.Unclaimed.Add(amount).Add(missing).Sub(before)

		if before.Less(amount) {
			of.SweepTx = step.TxHash
		}
	})
}

// takeBackUnclaimed has nobody claim what a sweep brought for payments that are gone, while no block holds the sweep. A
// release that claimed it already and is signed behind the sweep keeps it until that is dead.
func (w *sweepUpdate) takeBackUnclaimed(ctx context.Context, step *settlement.Step) error {
	if err := w.revertClaims(ctx, step); err != nil {
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
	return errors.Join(w.revertClaims(ctx, step), w.setUnclaimed(ctx, step, chain.Amount{}))
}

// takeBackClaims takes an amount, in base units of the asset, off what releases under way at its address have claimed.
// They all are: their transactions come after the sweep.
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
		if other.ID == r.ID || other.AssetID != r.AssetID || other.Claimed.IsZero() || amount.IsZero() {
			continue
		}

		took := chaindata.Min(other.Claimed, amount)
		other.Claimed, amount = other.Claimed.Sub(took), amount.Sub(took)

		if err := w.tx.PutSweep(ctx, other); err != nil {
			return err
		}
	}

	return nil
}

// unreleased returns what of all that a sweep brought, and of what its release claimed, no settlement shows.
func (w *sweepUpdate) unreleased(arrived chain.Amount) chain.Amount {
	return arrived.Add(w.release.Claimed).SubFloor(w.group.released())
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

	beyond := arrived.Add(w.release.Claimed)
	for _, s := range w.group {
		beyond = beyond.SubFloor(leftOfGross(s))
	}

	left := chaindata.Min(w.release.Amount.SubFloor(w.group.gross()), beyond)

	return chaindata.Min(left, of.Owed.Add(step.Unclaimed.SubFloor(of.Unclaimed))), nil
}

// addUnclaimed adds more, and takes less, from what is unclaimed at the address of a release (base units of its
// asset).
func addUnclaimed(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	nativeID string,
	more, less chain.Amount,
) error {
	if more == less {
		return nil
	}

	return changeUnclaimed(ctx, tx, r, nativeID, func(of *settlement.TokenResidue) {
		of.Unclaimed = of.Unclaimed.Add(more).SubFloor(less)
	})
}

// changeUnclaimed stores what change makes of what is unclaimed at the address of a release.
func changeUnclaimed(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	nativeID string,
	change func(of *settlement.TokenResidue),
) error {
	row, err := lockResidue(ctx, tx, r.Network, r.Deposit.Address)
	if err != nil {
		return err
	}

	of := residueOf(row, r.AssetID, nativeID)
	change(&of)
	setResidueOf(&row, of, nativeID)

	return tx.PutResidue(ctx, &row)
}

// returnOwed gives what a release without success bore back to the row of its address.
func (w *sweepUpdate) returnOwed(ctx context.Context) error {
	r := w.release
	owed, claimed := r.Owed, r.Claimed
	r.Owed, r.Claimed = chain.Amount{}, chain.Amount{}

	if owed.IsZero() && claimed.IsZero() {
		return nil
	}

	if err := w.addResidue(ctx, r.AssetID, chain.Amount{}, owed); err != nil {
		return err
	}

	return addUnclaimed(ctx, w.tx, r, w.nativeID(), claimed, chain.Amount{})
}

// isClaimed reports whether a later release claimed what a sweep brought for payments that were gone.
func (w *sweepUpdate) isClaimed(ctx context.Context, step *settlement.Step) (bool, error) {
	if step.Unclaimed.IsZero() {
		return false, nil
	}

	free, err := w.unclaimedOf(ctx, step)

	return free.Less(step.Unclaimed), err
}

// unclaimedOf returns what nobody claims yet of what a sweep brought for payments that are gone, in base units.
func (w *sweepUpdate) unclaimedOf(ctx context.Context, step *settlement.Step) (chain.Amount, error) {
	row, err := lockResidue(ctx, w.tx, w.release.Network, w.release.Deposit.Address)

	return chaindata.Min(step.Unclaimed, residueOf(row, w.release.AssetID, w.nativeID()).Unclaimed), err
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
