package sweep

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/settlement"
)

// sweepUpdate is one update of a release: the records as they will be stored, and the events to
// publish by settlement id.
type sweepUpdate struct {
	*Sweeper
	tx      settlement.Tx
	release *settlement.Sweep
	group   group
	events  map[string]event.Type
	// bore is what each of the group bore when it was read, in native base units; swept is set if the release was
	// swept then.
	bore  []chain.Amount
	swept bool
	// why is what is known of why the release failed beyond its reason; empty for a reason that says all.
	why string
}

// TransactionTx moves a release and its settlements when one of its transactions moves.
// Transactions of others are ignored.
func (s *Sweeper) TransactionTx(ctx context.Context, tx settlement.Tx, t wallet.Transaction) error {
	switch t.Kind {
	case wallet.Cancel:
		return s.displacedTx(ctx, tx, t)
	case wallet.Undelegate:
		return s.undelegatedTx(ctx, tx, t)
	default: // a step of a release, or nothing of ours
	}

	w, i, err := s.sweepUpdateOf(ctx, tx, t)
	if err != nil || w == nil {
		return err
	}

	w.release.Steps[i].State, w.release.Steps[i].TxHash = t.State, t.TxHash
	w.copyTxHash(t)
	waits := w.copyWait(t)

	switch t.State {
	case wallet.Queued:
		if !waits {
			return nil
		}

		return w.group.put(ctx, tx)
	case wallet.Signed, wallet.Broadcast, wallet.Included:
		err = w.advance(ctx, i)
	case wallet.Confirmed:
		err = w.confirm(ctx, i, t)
	case wallet.Failed:
		err = w.fail(ctx, i, t)
	}

	if err != nil {
		return err
	}

	return w.save(ctx)
}

// displacedTx has the step that a cancel displaced show what that costs in the block that holds it; nothing, once none
// does.
func (s *Sweeper) displacedTx(ctx context.Context, tx settlement.Tx, t wallet.Transaction) error {
	displaced, err := tx.Transaction(ctx, t.ObjectID)
	if errors.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	w, i, err := s.sweepUpdateOf(ctx, tx, displaced)
	if err != nil || w == nil {
		return err
	}

	before, after := w.setCost(&w.release.Steps[i], t)
	if before == after {
		return nil
	}

	switch {
	case w.ofNative() && sweptStep(w.release) != nil: // a nonce below that of its sweep was used up later
		err = w.correctResidue(ctx, before, after)
	case !w.ofNative() && paysNetworkFee(t, w.release.Deposit.Address):
		err = w.addResidue(ctx, w.nativeID(), before, after)
	}

	if err != nil {
		return err
	}

	return w.save(ctx)
}

// setCost sets what a transaction costs among those that displaced a step: its network fee in a final block, nothing
// without one. It returns what it was and is, in native base units.
func (w *sweepUpdate) setCost(step *settlement.Step, t wallet.Transaction) (before, after chain.Amount) {
	others := slices.Clone(step.Displaced)

	i := slices.IndexFunc(others, func(c settlement.Cost) bool { return c.TransactionID == t.ID })
	if i >= 0 {
		before = others[i].NetworkFee
		others = slices.Delete(others, i, i+1)
	}

	if t.State == wallet.Confirmed || t.State == wallet.Failed {
		after = t.Fee
	}

	if before == after {
		return before, after
	}

	if !after.IsZero() {
		others = append(others, settlement.Cost{TransactionID: t.ID, NetworkFee: after})
	}

	w.splitNetworkFees(func() { step.Displaced = others })

	return before, after
}

// sweepUpdateOf returns the update of the release that has the transaction as a step, and the step's
// index; nil for other transactions.
func (s *Sweeper) sweepUpdateOf(
	ctx context.Context,
	tx settlement.Tx,
	t wallet.Transaction,
) (w *sweepUpdate, step int, err error) {
	switch t.Kind {
	case wallet.TopUp, wallet.Delegate, wallet.Fee, wallet.Sweep:
	default:
		return nil, 0, nil
	}

	r, err := tx.Sweep(ctx, t.ObjectID)
	if errors.Is(err, fault.NotFound) {
		return nil, 0, nil
	}

	if err != nil {
		return nil, 0, err
	}

	i := slices.IndexFunc(r.Steps, func(step settlement.Step) bool { return step.TransactionID == t.ID })
	if i < 0 {
		return nil, 0, nil
	}

	w, err = s.updateOf(ctx, tx, r)

	return w, i, err
}

// updateOf returns the update of a release as it is stored.
func (s *Sweeper) updateOf(ctx context.Context, tx settlement.Tx, r settlement.Sweep) (*sweepUpdate, error) {
	g, err := tx.SettlementsByID(ctx, r.SettlementIDs)
	if err != nil {
		return nil, err
	}

	r.Steps = slices.Clone(r.Steps)

	return &sweepUpdate{
		Sweeper: s,
		tx:      tx,
		release: &r,
		group:   g,
		events:  map[string]event.Type{},
		bore:    group(g).costs(),
		swept:   isSwept(&r),
	}, nil
}

func (w *sweepUpdate) save(ctx context.Context) error {
	if err := w.oweOrphaned(ctx); err != nil {
		return err
	}

	if err := w.putSweep(ctx, w.tx, w.release); err != nil {
		return err
	}

	if err := w.passOnCosts(ctx); err != nil {
		return err
	}

	w.splitResidue()

	for i := range w.group {
		t, published := w.events[w.group[i].ID]
		if !published {
			if err := w.tx.PutSettlements(ctx, &w.group[i]); err != nil {
				return err
			}

			continue
		}

		if err := w.putTx(ctx, w.tx, &w.group[i], t); err != nil {
			return err
		}
	}

	return nil
}

// passOnCosts is passOn of the settlements that the release shares with later ones. One that was swept itself shows
// what they cost at its sweep.
func (w *sweepUpdate) passOnCosts(ctx context.Context) error {
	if w.swept || isSwept(w.release) {
		return nil
	}

	costs := w.group.costs()

	for i, before := range w.bore {
		if err := w.passOn(ctx, w.group[i], before, costs[i]); err != nil {
			return err
		}
	}

	return nil
}

// copyTxHash copies a transaction's hash to the settlements' fields that the API shows.
func (w *sweepUpdate) copyTxHash(t wallet.Transaction) {
	for i := range w.group {
		s := &w.group[i]

		switch t.Kind {
		case wallet.TopUp:
			s.TopUpTx = t.TxHash
		case wallet.Fee:
			s.FeeTx = t.TxHash
		case wallet.Sweep:
			s.SweepTx = t.TxHash
			for _, step := range w.release.Steps {
				if step.TransactionID == t.ID && !step.PaysFee.IsZero() {
					s.FeeTx = t.TxHash
				}
			}
		case wallet.Delegate, wallet.Undelegate:
			// They move no coin, or pay for energy.
		case wallet.Payout, wallet.Bump, wallet.Cancel, wallet.Recovery:
			// No step of a release.
		}
	}
}

// copyWait records in the settlements why a transaction of their release waits. It reports whether that is new.
func (w *sweepUpdate) copyWait(t wallet.Transaction) (fresh bool) {
	for i := range w.group {
		s := &w.group[i]

		if s.SweepID == w.release.ID && (t.Waits != "" || s.Status == settlement.Releasing) {
			fresh = settlementstate.Wait(s, t.Waits, t.WaitingSince) || fresh
		}
	}

	return fresh
}

// advance applies a transaction that is signed and not final. The first one starts the settlements. One that was
// confirmed left its block: what it cost and paid is taken back, and a sweep reverts what it released.
func (w *sweepUpdate) advance(ctx context.Context, i int) error {
	carry, err := w.startWaiting()
	if err != nil {
		return err
	}

	step := &w.release.Steps[i]
	swept := step.Kind == chain.StepSweep && step.Recorded

	for i := range w.group {
		s := &w.group[i]
		switch {
		case s.Status == settlement.Released && swept && s.SweepID == w.release.ID:
			if err := settlementstate.Revert(s, ""); err != nil {
				return err
			}

			w.events[s.ID] = event.SettlementReverted
		case step.Kind == chain.StepSweep && step.State == wallet.Included && w.waitsAnew(*s):
			if err := w.regain(s); err != nil {
				return err
			}
		}
	}

	if i == 0 && step.State == wallet.Signed {
		w.carryOrphaned(carry)
	}

	if step.Recorded {
		return w.takeBack(ctx, step)
	}

	if step.Kind == chain.StepSweep && !w.release.Done && hasStep(w.release, chain.StepTopUp, wallet.Failed) {
		return w.abandonUnlessSwept(ctx, settlement.TransactionFailed)
	}

	return nil
}

// startWaiting starts the settlements that wait for the release. One of them takes over what earlier ones left of their
// fees; left is what none did, in native base units.
func (w *sweepUpdate) startWaiting() (left chain.Amount, err error) {
	waits := func(s settlement.Settlement) bool {
		return (s.Status == settlement.Pending || s.Status == settlement.Held) && s.SweepID == w.release.ID
	}

	left = w.release.CarryIn
	bearer := w.group.bearer(left, waits)

	for i := range w.group {
		if !waits(w.group[i]) {
			continue
		}

		var borne chain.Amount

		if i == bearer {
			borne, left = left, chain.Amount{}
		}

		if err := settlementstate.Start(&w.group[i], borne); err != nil {
			return left, err
		}
	}

	return left, nil
}

// abandonUnlessSwept ends a release that lost what its sweep needs, but for one whose sweep is in a block: what that
// brings is released.
func (w *sweepUpdate) abandonUnlessSwept(ctx context.Context, reason settlement.Reason) error {
	in, err := w.hasSweepInBlock(ctx)
	if err != nil || in {
		return err
	}

	return w.abandon(ctx, reason)
}

// hasSweepInBlock reports whether the blocks that were read have a sweep of the release.
func (w *sweepUpdate) hasSweepInBlock(ctx context.Context) (bool, error) {
	for _, s := range w.release.Steps {
		if s.Kind != chain.StepSweep {
			continue
		}

		t, err := w.tx.Transaction(ctx, s.TransactionID)
		if err != nil {
			return false, err
		}

		if row, err := txmgr.AttemptRow(ctx, w.tx, t); err != nil || row.TxHash != "" {
			return err == nil, err
		}
	}

	return false, nil
}

// confirm applies a final transaction. After the sweep the release is done; after any other step it
// waits for the next, or is over again, where a fork had one of its transactions under way once more.
func (w *sweepUpdate) confirm(ctx context.Context, i int, t wallet.Transaction) error {
	step := &w.release.Steps[i]
	if step.Recorded {
		return nil
	}

	w.setNetworkFee(step, releaseCost(t))

	if err := errors.Join(
		w.recordResidue(ctx, step, t),
		w.payFee(ctx, step),
		w.correctSwept(ctx, step, chain.Amount{}, t.Fee.Add(w.ownFee(step))),
	); err != nil {
		return err
	}

	step.Recorded = true

	switch {
	case step.Kind == chain.StepSweep:
		return w.confirmSweep(ctx, step, t)
	case isSwept(w.release):
		w.finishSwept()
		return nil
	case w.isGivenUp() || !w.waitsForPayments(w.group):
		return w.abandonUnlessSwept(ctx, settlement.Replanning)
	}

	return nil
}

// finishSwept ends a release that was swept before: another of its steps is final now.
func (w *sweepUpdate) finishSwept() {
	w.release.Done = !hasFeeWaiting(w.release)
	w.splitReleased()
}

// confirmSweep releases the settlements of a release whose sweep is final.
func (w *sweepUpdate) confirmSweep(ctx context.Context, step *settlement.Step, t wallet.Transaction) error {
	arrived := arrivedBy(w.release, t)
	if arrived.IsZero() {
		// The token reported success and moved nothing.
		w.why = "nothing_arrived: the token reported success and moved nothing, transaction " + t.ID
		return w.abandon(ctx, settlement.TransactionFailed)
	}

	others, err := w.broughtForOthers(ctx, step, arrived)
	if err != nil {
		return err
	}

	if err := w.releaseSettlements(ctx, arrived.SubFloor(others)); err != nil {
		return err
	}

	w.release.Done = !hasFeeWaiting(w.release) // a fork may have an earlier step under way again

	if err := w.setUnclaimed(ctx, step, w.unreleased(arrived)); err != nil {
		return err
	}

	return w.addCarry(ctx)
}

// releaseSettlements releases the settlements whose payments are in the chain, with their shares of what arrived at
// the master wallet, in base units.
func (w *sweepUpdate) releaseSettlements(ctx context.Context, arrived chain.Amount) error {
	for j, net := range w.group.net(arrived.Add(w.release.Claimed())) {
		s := &w.group[j]
		if err := w.regain(s); err != nil {
			return err
		}

		if s.Status != settlement.Releasing {
			continue // its payment is gone; should it confirm again, this sweep stands for it
		}

		if err := settlementstate.Release(s, net, w.now()); err != nil {
			return err
		}

		if err := w.takeOver(ctx, s); err != nil {
			return err
		}

		w.events[s.ID] = event.SettlementReleased
	}

	return nil
}

// regain has a settlement count on the release once more that was to be released otherwise: its sweep was taken back
// and is here again, or the release was given up and its sweep is here after all.
func (w *sweepUpdate) regain(s *settlement.Settlement) error {
	switch {
	case s.Status == settlement.Reverted && s.Reason == "" || w.gaveUp(*s):
		if err := s.Return(true, true, time.Time{}); err != nil {
			return err
		}
	case w.waitsAnew(*s):
		if err := settlementstate.Assign(s, w.release.ID, w.release.Master.Address); err != nil {
			return err
		}
	default:
		return nil
	}

	return settlementstate.Start(s, chain.Amount{})
}

// waitsAnew reports whether a settlement waits for another release: this one was given up while its sweep could still
// be included.
func (w *sweepUpdate) waitsAnew(s settlement.Settlement) bool {
	return s.SweepID == "" && (s.Status == settlement.Pending || s.Status == settlement.Held)
}

// takeOver makes a settlement this release's that a later one had meanwhile. That one is named for its part of a
// platform fee that is under way, and goes on without it.
func (w *sweepUpdate) takeOver(ctx context.Context, s *settlement.Settlement) error {
	later := s.SweepID
	s.SweepID = w.release.ID

	if later == "" || later == w.release.ID {
		return nil
	}

	r, err := w.tx.Sweep(ctx, later)
	if err != nil {
		return err
	}

	waiting, err := feeWaiting(ctx, w.tx, &r, *s)
	if err != nil {
		return err
	}

	reserveDetached(&r, s.ID, settlementstate.DueFee(*s).SubFloor(waiting))

	if r.Done || hasLiveSweep(&r) {
		return w.putSweep(ctx, w.tx, &r)
	}

	return w.removeTx(ctx, w.tx, r, *s, chain.Amount{})
}

// gaveUp reports whether a settlement has failed with the release, as one of its transactions did or to be planned
// anew, and no other has it.
func (w *sweepUpdate) gaveUp(s settlement.Settlement) bool {
	return s.Status == settlement.Failed && s.FailedFor == "" && s.SweepID == w.release.ID &&
		(s.Reason == settlement.TransactionFailed || s.Reason == settlement.Replanning)
}

// fail applies a transaction that is proven dead, was never signed, or was reverted. It abandons the
// release, except after a reverted sweep that closed its account. A reverted transaction cost its
// network fee.
func (w *sweepUpdate) fail(ctx context.Context, i int, t wallet.Transaction) error {
	step := &w.release.Steps[i]
	before := step.NetworkFee
	w.why = t.Failure + ": the " + string(t.Kind) + " of the release, transaction " + t.ID
	w.setNetworkFee(step, t.Fee)

	err := w.correctSwept(ctx, step, before, t.Fee)
	if err == nil && t.Failure == wallet.FailReverted {
		err = w.recordResidue(ctx, step, t)
	}

	if err = errors.Join(err, w.dropUnclaimed(ctx, step)); err != nil {
		return err
	}

	if err := w.dropFee(ctx, step); err != nil {
		return err
	}

	if t.Failure != wallet.FailReverted { // what was executed is off the balance that is read next
		if err := w.unreserveStep(ctx, step); err != nil {
			return err
		}
	}

	switch {
	case w.release.Done:
		return nil // the release ended before; there is nothing to give up
	case isSwept(w.release):
		w.finishSwept()
		return nil
	case step.Kind == chain.StepDelegate:
		return nil // the release goes on, and is topped up instead
	case step.Kind == chain.StepFee && hasStep(w.release, chain.StepTopUp, wallet.Failed):
		return w.abandonUnlessSwept(ctx, w.reason(t)) // it was given up before, and waited for this fee alone
	case step.Kind == chain.StepFee && hasLiveSweep(w.release):
		return nil // a fork took the fee, and what the sweep brings is released without it
	}

	again := slices.ContainsFunc(w.group, func(s settlement.Settlement) bool {
		return s.Status == settlement.Reverted
	})
	if t.Failure == wallet.FailReverted && t.Order.Close && !again {
		// Anybody can make that happen, by a payment while it is on its way: the release goes on,
		// and leaves the account open.
		return nil
	}

	if step.Kind != chain.StepSweep {
		return w.abandonUnlessSwept(ctx, w.reason(t))
	}

	if t.Failure == wallet.FailReverted && !again && w.mayLackGas() {
		return nil // the planning run finds out whether it does
	}

	return w.abandon(ctx, w.reason(t))
}
