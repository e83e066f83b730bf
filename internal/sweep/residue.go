package sweep

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// recordResidue updates the residue for a final step: what is at the deposit address and no deposit explains, of
// native coin and of the token that a sweep moved.
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

	err := w.setResidue(ctx, step, left, took)
	if err != nil || step.Kind != chain.StepSweep || w.ofNative() {
		return err
	}

	left, took = chain.Amount{}, chain.Amount{}
	if t.State == wallet.Confirmed && !arrivedBy(w.release, t).IsZero() {
		left, took = w.tokenResidue()
	}

	return w.setTokenResidue(ctx, step, left, took)
}

// correctSwept corrects the residue of a sweep of native coin that stands, when an earlier step takes something else
// than before, in base units.
func (w *sweepUpdate) correctSwept(
	ctx context.Context,
	step *settlement.Step,
	before, after chain.Amount,
) error {
	if !w.ofNative() || step.Kind == chain.StepSweep || before == after {
		return nil
	}

	return w.correctResidue(ctx, before.SubFloor(after), after.SubFloor(before))
}

// passOn corrects what is on record at the address, as a transaction of this release costs a settlement something else
// that is not this one's: another release has swept it, or ended without, or its payment is gone and none has it. What
// waits for a release bears it there. before and after are what it bears, in native base units.
func (w *sweepUpdate) passOn(
	ctx context.Context,
	of settlement.Settlement,
	before, after chain.Amount,
) error {
	if !w.ofNative() || before == after || of.SweepID == w.release.ID {
		return nil
	}

	if of.SweepID == "" {
		if !isOrphaned(of) {
			return nil
		}

		return w.addSpentTx(ctx, w.tx, of, before, after) // it is out of the residue, see withoutSpentTx
	}

	r, err := w.tx.Sweep(ctx, of.SweepID)
	if err != nil {
		return err
	}

	other, err := w.sweptUpdate(ctx, w.tx, r)
	if err != nil {
		return err
	}

	if other == nil {
		return w.oweFailedTx(ctx, w.tx, r, of)
	}

	if err := other.correctResidue(ctx, before.SubFloor(after), after.SubFloor(before)); err != nil {
		return err
	}

	return w.putSweep(ctx, w.tx, other.release)
}

// correctResidue corrects the residue of the asset that a confirmed sweep left: an earlier step of a native release
// costs something else after a reorganisation, or a payment changed. more and less are base units.
func (w *sweepUpdate) correctResidue(ctx context.Context, more, less chain.Amount) error {
	sweep := sweptStep(w.release)
	if sweep == nil {
		return nil
	}

	if !w.ofNative() {
		left, took := sweep.TokenAdded.Add(more), sweep.TokenTaken.Add(less)
		return w.setTokenResidue(ctx, sweep, left.SubFloor(took), took.SubFloor(left))
	}

	left, took := sweep.ResidueAdded.Add(more), sweep.ResidueTaken.Add(less)

	return w.setResidue(ctx, sweep, left.SubFloor(took), took.SubFloor(left))
}

// setTokenResidue replaces the delta of the token that a sweep moves (base units) and updates the address row.
func (w *sweepUpdate) setTokenResidue(
	ctx context.Context,
	step *settlement.Step,
	left, took chain.Amount,
) error {
	more, less := step.TokenTaken.Add(left), step.TokenAdded.Add(took)
	step.TokenAdded, step.TokenTaken = left, took

	return w.addResidue(ctx, w.release.AssetID, more, less)
}

// setResidue replaces the step's residue delta (native base units) and updates the address row.
func (w *sweepUpdate) setResidue(
	ctx context.Context,
	step *settlement.Step,
	left, took chain.Amount,
) error {
	more, less := step.ResidueTaken.Add(left), step.ResidueAdded.Add(took)
	step.ResidueAdded, step.ResidueTaken = left, took

	return w.addResidue(ctx, w.nativeID(), more, less)
}

// addResidue adds more, and takes less, from the residue of an asset at the release's address (base units).
func (w *sweepUpdate) addResidue(ctx context.Context, assetID string, more, less chain.Amount) error {
	address := w.release.Deposit.Address
	n, _ := w.registry.Network(w.release.Network)

	if err := addResidue(ctx, w.tx, n, address, assetID, more, less); err != nil {
		return err
	}

	residue, err := residueAt(ctx, w.tx, n, address, w.nativeID())
	w.release.ResidueOut = residue.Amount

	return err
}

// splitResidue sets the settlements' shares of the release's residue, by gross; the remainder is the oldest's.
func (w *sweepUpdate) splitResidue() {
	if len(w.group) == 0 {
		return
	}

	in := settlementstate.Split(w.release.ResidueIn, grossOfEach(w.group))
	out := settlementstate.Split(w.release.ResidueOut, grossOfEach(w.group))

	for i := range w.group {
		w.group[i].ResidueIn, w.group[i].ResidueOut = in[i], out[i]
	}
}

// addResidue adds more, and takes less, from the residue of an asset at an address (base units).
func addResidue(
	ctx context.Context,
	tx settlement.Tx,
	n chain.Network,
	address chain.Address,
	assetID string,
	more, less chain.Amount,
) error {
	if more == less {
		return nil
	}

	row, err := lockResidue(ctx, tx, n.Slug, address)
	if err != nil {
		return err
	}

	native, _ := n.Native()
	of := residueOf(row, assetID, native.ID)
	more, less = of.Amount.Add(more), of.Owed.Add(less)
	of.Amount, of.Owed = more.SubFloor(less), less.SubFloor(more)
	setResidueOf(&row, of, native.ID)

	return tx.PutResidue(ctx, &row)
}

// residueAt returns the residue of an asset at an address (base units): its row, less what foreign transactions took
// there. A row that was charged for those has that much more.
func residueAt(
	ctx context.Context,
	tx settlement.Tx,
	n chain.Network,
	address chain.Address,
	assetID string,
) (settlement.TokenResidue, error) { // spec D4.17
	row, err := lockResidue(ctx, tx, n.Slug, address)
	if err != nil {
		return settlement.TokenResidue{}, err
	}

	rows, err := tx.UnrecordedOutgoing(ctx, n.Slug, address, time.Time{})
	native, _ := n.Native()

	return lessForeign(row, rows, assetID, native.ID), err
}

// lessForeign returns the residue of an asset in a row (base units), less what foreign ones of rows took.
func lessForeign(
	row settlement.Residue,
	rows []wallet.Outgoing,
	assetID, nativeID string,
) settlement.TokenResidue {
	residue := residueOf(row, assetID, nativeID)
	less := residue.Owed

	for _, row := range rows {
		if walletstate.IsForeign(row) &&
			row.Outpoint == (chain.Outpoint{}) { // a coin that is gone is missing in its own release
			less = less.Add(takenBy(row, assetID, nativeID))
		}
	}

	residue.Amount, residue.Owed = residue.Amount.SubFloor(less), less.SubFloor(residue.Amount)

	return residue
}

// residueOf returns what a row says of an asset, native coin or a token.
func residueOf(row settlement.Residue, assetID, nativeID string) settlement.TokenResidue {
	if assetID == nativeID {
		return settlement.TokenResidue{
			AssetID:   nativeID,
			Amount:    row.Amount,
			Owed:      row.Owed,
			Unclaimed: row.Unclaimed,
		}
	}

	for _, token := range row.Tokens {
		if token.AssetID == assetID {
			return token
		}
	}

	return settlement.TokenResidue{AssetID: assetID}
}

// setResidueOf replaces what a row says of an asset.
func setResidueOf(row *settlement.Residue, of settlement.TokenResidue, nativeID string) {
	if of.AssetID == nativeID {
		row.Amount, row.Owed, row.Unclaimed = of.Amount, of.Owed, of.Unclaimed
		return
	}

	row.Tokens = slices.DeleteFunc(
		slices.Clone(row.Tokens), func(t settlement.TokenResidue) bool { return t.AssetID == of.AssetID },
	)
	if !of.Amount.IsZero() || !of.Owed.IsZero() || len(of.Unclaimed) > 0 {
		row.Tokens = append(row.Tokens, of)
	}
}

// takenBy returns what a transaction took of an asset from the address of its row, in base units.
func takenBy(row wallet.Outgoing, assetID, nativeID string) (sum chain.Amount) {
	if assetID == nativeID {
		sum = row.Fee
	}

	if row.Failed {
		return sum
	}

	for _, t := range row.Transfers {
		if t.From == row.Address && t.AssetID == assetID {
			sum = sum.Add(t.Amount)
		}
	}

	return sum
}

// tokenResidue returns what a sweep of a token left of the payments that it stands for, and what it took beyond
// them, in base units.
func (w *sweepUpdate) tokenResidue() (left, took chain.Amount) {
	var held chain.Amount

	for _, s := range w.group {
		if !isOrphaned(s) {
			held = held.Add(s.Gross)
		}
	}

	return held.SubFloor(w.release.Amount), w.release.Amount.SubFloor(held)
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

	gone = gone.Add(w.costOfNobody()).Add(sweep.Fee).Add(w.release.Owed)

	for _, m := range sweep.Transfers {
		if m.AssetID == w.nativeID() &&
			(m.To == w.release.Master.Address || m.To == w.release.FeeAddress) {
			gone = gone.Add(m.Amount)
		}
	}

	if walletstate.SpentCoins(sweep) { // what it took beyond them were coins of others
		return held.SubFloor(gone), took
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
	row, ok, err := tx.ResidueForUpdate(ctx, network, address)
	if !ok {
		row = settlement.Residue{Network: network, Address: address}
	}

	return row, err
}
