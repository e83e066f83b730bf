package sweep

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/settlement"
)

// releaseCost returns what a final step costs its release, in native base units: its network fee, and what it pays for
// energy.
func releaseCost(t wallet.Transaction) chain.Amount {
	if t.Kind != wallet.Delegate {
		return t.Fee
	}

	return t.Fee.Add(chaindata.EnergyPrice(t.Order))
}

// setNetworkFee sets what the network took for a step, in native base units.
func (w *sweepUpdate) setNetworkFee(step *settlement.Step, fee chain.Amount) {
	w.splitNetworkFees(func() { step.NetworkFee = fee })
}

// splitNetworkFees applies a change of the release's network fees and splits the new total among the
// settlements; see shares.
func (w *sweepUpdate) splitNetworkFees(change func()) {
	if len(w.group) == 0 {
		change()
		return
	}

	before := w.shares(totalNetworkFees(w.release))

	change()
	w.replaceShares(before)
}

// replaceShares has each settlement bear its share of the release's network fees in place of what it bore before.
func (w *sweepUpdate) replaceShares(before []chain.Amount) {
	for i, share := range w.shares(totalNetworkFees(w.release)) {
		w.group[i].NetworkFees = w.group[i].NetworkFees.Add(share).SubFloor(before[i])
	}
}

// leaveNetworkFees has those that stay in a release bear what one that leaves bore of its network fees: a fork may take
// back what its steps cost. The last one bears it on.
func (s *Sweeper) leaveNetworkFees(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	leaves *settlement.Settlement,
) error {
	total := totalNetworkFees(r)
	if len(r.SettlementIDs) == 1 {
		r.LeftFees = total
		return nil
	}

	if total.IsZero() {
		return nil
	}

	g, err := tx.SettlementsByID(ctx, r.SettlementIDs)
	if err != nil {
		return err
	}

	w := &sweepUpdate{Sweeper: s, release: r, group: g}
	before := w.shares(total)
	i := slices.Index(w.group.ids(), leaves.ID)

	leaves.NetworkFees = leaves.NetworkFees.SubFloor(before[i])
	w.group = slices.Delete(w.group, i, i+1)
	w.replaceShares(slices.Delete(before, i, i+1))

	return w.group.put(ctx, tx)
}

// changeGross gives a settlement the amount of its payment as it is on this branch, in base units. The release that it
// is or was in splits its network fees anew; sweepID names it, or is empty. Others of it may have been swept by later
// releases.
func (s *Sweeper) changeGross(
	ctx context.Context,
	tx settlement.Tx,
	of *settlement.Settlement,
	gross chain.Amount,
	sweepID string,
) error {
	if of.Gross == gross || sweepID == "" {
		of.Gross = gross
		return nil
	}

	r, err := tx.Sweep(ctx, sweepID)
	if err != nil {
		return err
	}

	w, err := s.updateOf(ctx, tx, r)
	if err != nil {
		return err
	}

	of.Gross = gross

	i := slices.Index(w.group.ids(), of.ID)
	if i < 0 {
		return nil // it left
	}

	before := w.shares(totalNetworkFees(w.release))
	w.group[i] = *of
	w.replaceShares(before)
	of.NetworkFees = w.group[i].NetworkFees

	if err := w.passOnCosts(ctx); err != nil {
		return err
	}

	return slices.Delete(w.group, i, i+1).put(ctx, tx)
}

// costOfNobody returns the network fees of a release that all have left which none of them bears, in native base units:
// a fork had it under way then, or it costs more in its new blocks.
func (w *sweepUpdate) costOfNobody() chain.Amount {
	if len(w.group) > 0 {
		return chain.Amount{}
	}

	return totalNetworkFees(w.release).SubFloor(w.release.LeftFees)
}
