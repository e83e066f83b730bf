package sweep

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// PaymentLostTx fails or reverts the settlement of a payment that left the chain, in the transaction that records
// it. What was not released yet fails as payment_orphaned, what was is reverted; both come back when the payment
// confirms again.
func (s *Sweeper) PaymentLostTx(ctx context.Context, tx settlement.Tx, paymentID string) error {
	found, err := tx.SettlementsOfPayments(ctx, []string{paymentID})
	if err != nil || len(found) == 0 {
		return err
	}

	lost := found[0]
	switch lost.Status {
	case settlement.Released:
		return s.revertLostTx(ctx, tx, lost)
	case settlement.Reverted:
		if err := settlementstate.Revert(&lost, settlement.PaymentOrphaned); err != nil {
			return err
		}

		return tx.PutSettlements(ctx, &lost)
	case settlement.Failed:
		return s.orphanFailedTx(ctx, tx, lost)
	case settlement.Pending, settlement.Held, settlement.Releasing:
	default:
		return nil
	}

	r, in, err := releaseOf(ctx, tx, lost)
	if err != nil {
		return err
	}

	if err := settlementstate.Fail(&lost, settlement.PaymentOrphaned, s.now(), time.Time{}); err != nil {
		return err
	}
	// In a release of which something is signed that it pays for, it stays: those bytes may be included when the
	// payment is, and what they take belongs to this settlement. The others are planned anew without it.
	pays := isStarted(&r) && (s.isNative(&r) || len(r.SettlementIDs) == 1)
	detached := in && !r.Done && !hasLiveSweep(&r) && !pays

	if !in || detached {
		if err := s.withoutSpentTx(ctx, tx, lost); err != nil {
			return err
		}
	}

	if detached {
		return s.detachTx(ctx, tx, r, lost)
	}

	return s.putTx(ctx, tx, &lost, event.SettlementFailed)
}

// withoutSpentTx takes what a settlement in no release has paid out of the residue of its address, as its payment is
// gone: an address holds what is left of its deposits, and the residue. Coins bear their own costs.
func (s *Sweeper) withoutSpentTx(ctx context.Context, tx settlement.Tx, lost settlement.Settlement) error {
	return s.addSpentTx(ctx, tx, lost, chain.Amount{}, group{lost}.spent())
}

// withSpentTx undoes withoutSpentTx, as the payment is back.
func (s *Sweeper) withSpentTx(ctx context.Context, tx settlement.Tx, back settlement.Settlement) error {
	return s.addSpentTx(ctx, tx, back, group{back}.spent(), chain.Amount{})
}

// addSpentTx adds more, and takes less, from the residue at a settlement's address, unless coins are spent there.
func (s *Sweeper) addSpentTx(
	ctx context.Context,
	tx settlement.Tx,
	of settlement.Settlement,
	more, less chain.Amount,
) error {
	n, ok := s.registry.Network(of.Network)
	if !ok || s.spendsCoinsOn(of.Network) {
		return nil
	}

	return addResidue(ctx, tx, n, of.Deposit.Address, of.AssetID, more, less)
}

// orphanFailedTx keeps a person from retrying a settlement that failed before its payment was gone: it would release
// what others brought to the address. The address owes what its release took there.
func (s *Sweeper) orphanFailedTx(ctx context.Context, tx settlement.Tx, lost settlement.Settlement) error {
	if lost.Reason == settlement.PaymentOrphaned {
		return nil
	}

	if err := settlementstate.Orphan(&lost); err != nil {
		return err
	}

	r, in, err := releaseOf(ctx, tx, lost)
	if err != nil {
		return err
	}

	if in {
		if err := s.oweFailedTx(ctx, tx, r, lost); err != nil {
			return err
		}
	}

	return tx.PutSettlements(ctx, &lost)
}

// revertLostTx reverts a released settlement whose payment is gone. Its sweep took what others hold at the address,
// and what it brought is theirs.
func (s *Sweeper) revertLostTx(ctx context.Context, tx settlement.Tx, lost settlement.Settlement) error {
	brought := *lost.NetReleased

	if err := settlementstate.Revert(&lost, settlement.PaymentOrphaned); err != nil {
		return err
	}

	if err := s.putTx(ctx, tx, &lost, event.SettlementReverted); err != nil || lost.Simulated {
		return err
	}

	r, in, err := releaseOf(ctx, tx, lost)
	if err != nil || !in {
		return err
	}

	if len(r.Steps) == 0 {
		return s.leaveClaimTx(ctx, tx, r)
	}

	w, err := s.sweptUpdate(ctx, tx, r)
	if err != nil || w == nil {
		return err
	}

	if err := w.correctGross(ctx, lost.Gross, chain.Amount{}); err != nil {
		return err
	}

	step := sweptStep(w.release)
	if err := w.setUnclaimed(ctx, step, step.Unclaimed.Add(brought)); err != nil {
		return err
	}

	return s.putSweep(ctx, tx, w.release)
}

// sweptUpdate returns the update of a release whose sweep is confirmed; nil for any other.
func (s *Sweeper) sweptUpdate(
	ctx context.Context,
	tx settlement.Tx,
	r settlement.Sweep,
) (*sweepUpdate, error) {
	if sweptStep(&r) == nil {
		return nil, nil
	}

	return s.updateOf(ctx, tx, r)
}

// correctGross corrects the residue that a confirmed sweep left, when less or more of its deposits is in the chain
// than before, in base units. A sweep that spends coins takes nothing else.
func (w *sweepUpdate) correctGross(ctx context.Context, before, after chain.Amount) error {
	if before == after || w.spendsCoins() {
		return nil
	}

	return w.correctResidue(ctx, after.SubFloor(before), before.SubFloor(after))
}

// releaseOf returns the release that a settlement is or was in; ok is false without one.
func releaseOf(
	ctx context.Context,
	tx settlement.Tx,
	of settlement.Settlement,
) (r settlement.Sweep, ok bool, err error) {
	if of.SweepID == "" {
		return settlement.Sweep{}, false, nil
	}

	r, err = tx.Sweep(ctx, of.SweepID)
	if err != nil {
		return settlement.Sweep{}, false, err
	}

	return r, slices.Contains(r.SettlementIDs, of.ID), nil
}

// detachTx removes a lost settlement from a release whose sweep is not made yet. The release goes
// on without it; when it was the last one, what is queued is canceled.
func (s *Sweeper) detachTx(
	ctx context.Context,
	tx settlement.Tx,
	r settlement.Sweep,
	lost settlement.Settlement,
) error {
	carried, err := giveBack(ctx, tx, &r, &lost)
	if err != nil {
		return err
	}

	if err := s.leaveNetworkFees(ctx, tx, &r, &lost); err != nil {
		return err
	}

	lost.SweepID = ""
	if err := s.putTx(ctx, tx, &lost, event.SettlementFailed); err != nil {
		return err
	}

	return s.removeTx(ctx, tx, r, lost, carried)
}

// removeTx has a release whose sweep is not made yet go on without a settlement. carried is what that one gave back of
// earlier ones' platform fees, in native base units.
func (s *Sweeper) removeTx(
	ctx context.Context,
	tx settlement.Tx,
	r settlement.Sweep,
	gone settlement.Settlement,
	carried chain.Amount,
) error {
	r.SettlementIDs = slices.DeleteFunc(
		slices.Clone(r.SettlementIDs), func(id string) bool { return id == gone.ID },
	)
	r.Amount = r.Amount.Sub(gone.Gross)

	if len(r.SettlementIDs) > 0 {
		if err := reassignFeeTx(ctx, tx, &r, carried); err != nil {
			return err
		}
	} else if !carried.IsZero() {
		if err := returnCarryTx(ctx, tx, &r, carried); err != nil {
			return err
		}
	}

	if err := s.putSweep(ctx, tx, &r); err != nil {
		return err
	}

	// What is queued was planned for more than remains. The event of its cancellation ends the release.
	if last := lastStep(&r); last != nil && last.State == wallet.Queued {
		_, err := s.outbox.CancelTx(ctx, tx, last.TransactionID)
		return err
	}

	// What is signed goes on: a top-up becomes residue, and the worker ends a release without settlements.
	return nil
}

// reassignFeeTx moves a detached settlement's carried fee (native base units) to one that remains, and
// recomputes the fee that the release pays.
func reassignFeeTx(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	carried chain.Amount,
) error {
	remaining, err := tx.SettlementsByID(ctx, r.SettlementIDs)
	if err != nil {
		return err
	}

	if !carried.IsZero() {
		all := func(settlement.Settlement) bool { return true }
		bearer := &remaining[group(remaining).bearer(carried, all)]
		settlementstate.CarryIn(bearer, carried)

		if err := tx.PutSettlements(ctx, bearer); err != nil {
			return err
		}
	}

	if r.Fee.IsZero() || hasLiveFee(r) {
		return nil
	}

	waiting, err := feesWaiting(ctx, tx, r, remaining...)
	if err != nil {
		return err
	}

	r.Fee = chain.Amount{}
	for _, s := range remaining { // what is under way pays the rest, or it is carried
		r.Fee = r.Fee.Add(settlementstate.DueFee(s).SubFloor(waiting[s.ID]))
	}

	if !isStarted(r) {
		r.Fee = r.Fee.Add(r.CarryIn)
	}

	return nil
}

// leaveClaimTx takes a settlement whose payment is gone out of its release without transactions, and returns what that
// claimed.
func (s *Sweeper) leaveClaimTx(ctx context.Context, tx settlement.Tx, r settlement.Sweep) error {
	c, err := s.updateOf(ctx, tx, r)
	if err != nil {
		return err
	}

	lost := &c.group[0]
	lost.SweepID = ""

	return errors.Join(c.returnClaim(ctx), s.withoutSpentTx(ctx, tx, *lost), c.save(ctx))
}
