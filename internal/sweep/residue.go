package sweep

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/settlement"
)

// recordResidue updates the residue for a final step: the native coin at the deposit address that no
// deposit explains.
func (w *sweepUpdate) recordResidue(
	ctx context.Context,
	step *settlement.Step,
	t wallet.Transaction,
) error {
	var left, took chain.Amount

	switch {
	case step.Kind == chain.StepTopUp:
		for _, m := range t.Transfers {
			if m.To == w.release.Deposit.Address && m.AssetID == w.nativeID() {
				left = left.Add(m.Amount)
			}
		}
	case w.ofNative() && step.Kind == chain.StepSweep && t.State == wallet.Confirmed:
		// What the deposits held, less what they paid and what arrived, stays behind.
		taken := t.Fee
		for _, m := range t.Transfers {
			if m.AssetID == w.nativeID() &&
				(m.To == w.release.Master.Address || m.To == w.release.FeeAddress) {
				taken = taken.Add(m.Amount)
			}
		}

		held := w.unspentDeposits()
		left, took = held.SubFloor(taken), taken.SubFloor(held)
	case !w.ofNative() && paysNetworkFee(t, w.release.Deposit.Address):
		took = t.Fee
	}

	return w.setResidue(ctx, step, left, took)
}

// correctResidue corrects the residue that a confirmed sweep left, when an earlier step of a native
// release costs something else after a reorganisation. more and less are native base units.
func (w *sweepUpdate) correctResidue(ctx context.Context, more, less chain.Amount) error {
	i := slices.IndexFunc(
		w.release.Steps,
		func(s settlement.Step) bool {
			return s.Kind == chain.StepSweep && s.Recorded && s.State == wallet.Confirmed
		},
	)
	if i < 0 {
		return nil
	}

	sweep := &w.release.Steps[i]
	left, took := sweep.ResidueAdded.Add(more), sweep.ResidueTaken.Add(less)

	return w.setResidue(ctx, sweep, left.SubFloor(took), took.SubFloor(left))
}

// setResidue replaces the step's residue delta (native base units) and updates the address row.
func (w *sweepUpdate) setResidue(
	ctx context.Context,
	step *settlement.Step,
	left, took chain.Amount,
) error {
	row, err := lockResidue(ctx, w.tx, w.release.Network, w.release.Deposit.Address)
	if err != nil {
		return err
	}

	old := row
	more, less := row.Amount.Add(step.ResidueTaken).Add(left), row.Owed.Add(step.ResidueAdded).Add(took)
	row.Amount, row.Owed = more.SubFloor(less), less.SubFloor(more)
	step.ResidueAdded, step.ResidueTaken = left, took

	w.release.ResidueOut = row.Amount
	if row == old {
		return nil
	}

	return w.tx.PutResidue(ctx, &row)
}

// unspentDeposits returns what earlier transactions left of native deposits for the sweep, in base
// units. The sweep's own costs are not deducted.
func (w *sweepUpdate) unspentDeposits() chain.Amount {
	left, gone := w.release.Amount, chain.Amount{}
	for _, s := range w.group {
		gone = gone.Add(s.FeePaid).Add(s.NetworkFees)
	}

	if last := lastStep(w.release); last != nil && last.Kind == chain.StepSweep {
		left = left.Add(last.NetworkFee)
		if last.Recorded {
			left = left.Add(last.PaysFee)
		}
	}

	return left.SubFloor(gone)
}

// ofNative reports whether the deposits are of the native coin, which pays its own network fees.
func (w *sweepUpdate) ofNative() bool { return w.release.AssetID == w.nativeID() }

// nativeID returns the id of the network's native coin.
func (w *sweepUpdate) nativeID() string {
	n, _ := w.registry.Network(w.release.Network)
	native, _ := n.Native()

	return native.ID
}

func paysNetworkFee(t wallet.Transaction, address chain.Address) bool {
	if t.Order.FeePayer != nil {
		return t.Order.FeePayer.Address == address
	}

	return t.Order.From.Address == address
}

// lockResidue locks and returns the residue at an address; a new record when there is none.
func lockResidue(
	ctx context.Context,
	tx settlement.Tx,
	network string,
	address chain.Address,
) (settlement.Residue, error) {
	row, ok, err := tx.Residue(ctx, network, address)
	if !ok {
		row = settlement.Residue{Network: network, Address: address}
	}

	return row, err
}
