package sweep

import (
	"context"
	"time"

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
		left, took = w.sweepResidue(t)
	case !w.ofNative() && paysNetworkFee(t, w.release.Deposit.Address):
		took = t.Fee
	}

	return w.setResidue(ctx, step, left, took)
}

// correctResidue corrects the residue that a confirmed sweep left, when an earlier step of a native
// release costs something else after a reorganisation. more and less are native base units.
func (w *sweepUpdate) correctResidue(ctx context.Context, more, less chain.Amount) error {
	sweep := sweptStep(w.release)
	if sweep == nil {
		return nil
	}

	left, took := sweep.ResidueAdded.Add(more), sweep.ResidueTaken.Add(less)

	return w.setResidue(ctx, sweep, left.SubFloor(took), took.SubFloor(left))
}

// setResidue replaces the step's residue delta (native base units) and updates the address row.
func (w *sweepUpdate) setResidue(
	ctx context.Context,
	step *settlement.Step,
	left, took chain.Amount,
) error {
	more, less := step.ResidueTaken.Add(left), step.ResidueAdded.Add(took)
	step.ResidueAdded, step.ResidueTaken = left, took

	return w.addResidue(ctx, more, less)
}

// addResidue adds more, and takes less, from the residue at the release's address (native base units).
func (w *sweepUpdate) addResidue(ctx context.Context, more, less chain.Amount) error {
	address := w.release.Deposit.Address
	if err := addResidue(ctx, w.tx, w.release.Network, address, more, less); err != nil {
		return err
	}

	n, _ := w.registry.Network(w.release.Network)
	residue, err := residueAt(ctx, w.tx, n, address)
	w.release.ResidueOut = residue.Amount

	return err
}

// splitResidue sets the settlements' shares of the release's residue, by gross; the remainder is the oldest's.
func (w *sweepUpdate) splitResidue() {
	if len(w.group) == 0 {
		return
	}

	in := settlement.Split(w.release.ResidueIn, grossOfEach(w.group))
	out := settlement.Split(w.release.ResidueOut, grossOfEach(w.group))

	for i := range w.group {
		w.group[i].ResidueIn, w.group[i].ResidueOut = in[i], out[i]
	}
}

// addResidue adds more, and takes less, from the residue row of an address (native base units).
func addResidue(
	ctx context.Context,
	tx settlement.Tx,
	network string,
	address chain.Address,
	more, less chain.Amount,
) error {
	if more == less {
		return nil
	}

	row, err := lockResidue(ctx, tx, network, address)
	if err != nil {
		return err
	}

	more, less = row.Amount.Add(more), row.Owed.Add(less)
	row.Amount, row.Owed = more.SubFloor(less), less.SubFloor(more)

	return tx.PutResidue(ctx, &row)
}

// residueAt returns the residue at an address (native base units): its row, less what foreign transactions took
// there. A row that was charged for those has that much more.
func residueAt(
	ctx context.Context,
	tx settlement.Tx,
	n chain.Network,
	address chain.Address,
) (settlement.Residue, error) { // spec D4.17
	residue, err := lockResidue(ctx, tx, n.Slug, address)
	if err != nil {
		return residue, err
	}

	rows, err := tx.UnrecordedOutgoing(ctx, n.Slug, address, time.Time{})
	if err != nil {
		return residue, err
	}

	native, _ := n.Native()
	less := residue.Owed

	for _, row := range rows {
		if row.Foreign() &&
			row.Outpoint == (chain.Outpoint{}) { // a coin that is gone is missing in its own release
			less = less.Add(takenBy(row, native.ID))
		}
	}

	residue.Amount, residue.Owed = residue.Amount.SubFloor(less), less.SubFloor(residue.Amount)

	return residue, nil
}

// takenBy returns what a transaction took of native coin from the address of its row, in base units.
func takenBy(row wallet.Outgoing, nativeID string) chain.Amount {
	sum := row.Fee
	if row.Failed {
		return sum
	}

	for _, t := range row.Transfers {
		if t.From == row.Address && t.AssetID == nativeID {
			sum = sum.Add(t.Amount)
		}
	}

	return sum
}

// sweepResidue returns what a sweep of native coin left of the deposits that it stands for, and what it took
// beyond them, in base units. On another branch another amount may have arrived than the sweep was made for.
func (w *sweepUpdate) sweepResidue(sweep wallet.Transaction) (left, took chain.Amount) {
	var held, gone chain.Amount

	for _, s := range w.group {
		if !isOrphaned(s) {
			held = held.Add(s.Gross)
		}

		gone = gone.Add(s.FeePaid).Add(s.NetworkFees)
	}

	// What the sweep itself cost is in its transaction.
	if last := lastStep(w.release); last != nil && last.Kind == chain.StepSweep {
		held = held.Add(last.NetworkFee)
		if last.Recorded {
			held = held.Add(last.PaysFee)
		}
	}

	gone = gone.Add(sweep.Fee).Add(w.release.Owed)

	for _, m := range sweep.Transfers {
		if m.AssetID == w.nativeID() &&
			(m.To == w.release.Master.Address || m.To == w.release.FeeAddress) {
			gone = gone.Add(m.Amount)
		}
	}

	return held.SubFloor(gone), gone.SubFloor(held)
}

// isOrphaned reports whether the payment of a settlement left the chain: nothing is at the address for it.
func isOrphaned(s settlement.Settlement) bool {
	return s.Reason == settlement.PaymentOrphaned
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
