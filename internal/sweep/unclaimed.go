package sweep

import (
	"context"
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
// address row.
func (w *sweepUpdate) setUnclaimed(ctx context.Context, step *settlement.Step, amount chain.Amount) error {
	before := step.Unclaimed
	step.Unclaimed = amount

	return addUnclaimed(ctx, w.tx, w.release, w.nativeID(), amount, before)
}

// unreleased returns what of all that a sweep brought, and of what its release claimed, no settlement shows.
func (w *sweepUpdate) unreleased(arrived chain.Amount) chain.Amount {
	return arrived.Add(w.release.Claimed).SubFloor(w.group.released())
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

	row, err := lockResidue(ctx, tx, r.Network, r.Deposit.Address)
	if err != nil {
		return err
	}

	of := residueOf(row, r.AssetID, nativeID)
	of.Unclaimed = of.Unclaimed.Add(more).SubFloor(less)
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

	row, err := lockResidue(ctx, w.tx, w.release.Network, w.release.Deposit.Address)

	return residueOf(row, w.release.AssetID, w.nativeID()).Unclaimed.Less(step.Unclaimed), err
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
