package sweep

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
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

	before := w.release.Steps[i]
	w.release.Steps[i].State, w.release.Steps[i].TxHash = t.State, t.TxHash
	w.copyTxHash(t)

	switch t.State {
	case wallet.Queued:
		return nil
	case wallet.Signed, wallet.Broadcast, wallet.Included:
		err = w.advance(ctx, before, t)
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

// displacedTx adds the network fee of a cancel transaction to the step that it displaced.
func (s *Sweeper) displacedTx(ctx context.Context, tx settlement.Tx, t wallet.Transaction) error {
	if t.State != wallet.Confirmed {
		return nil
	}

	displaced, err := tx.Transaction(ctx, t.ObjectID)
	if errors.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	w, i, err := s.sweepUpdateOf(ctx, tx, displaced)
	if err != nil || w == nil || isSwept(w.release) {
		return err
	}

	if !w.addCost(&w.release.Steps[i], t) {
		return nil // it left the chain and is back
	}

	if err := w.recordResidue(ctx, &settlement.Step{}, t); err != nil {
		return err
	}

	return w.save(ctx)
}

// addCost adds the network fee of a transaction to those of a step. added is false when it was added before.
func (w *sweepUpdate) addCost(step *settlement.Step, t wallet.Transaction) (added bool) {
	if slices.ContainsFunc(step.Displaced, func(c settlement.Cost) bool { return c.TransactionID == t.ID }) {
		return false
	}

	w.splitNetworkFees(func() {
		step.Displaced = append(
			slices.Clip(step.Displaced), settlement.Cost{TransactionID: t.ID, NetworkFee: t.Fee},
		)
	})

	return true
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

	g, err := tx.SettlementsByID(ctx, r.SettlementIDs)
	if err != nil {
		return nil, 0, err
	}

	r.Steps = slices.Clone(r.Steps)

	return &sweepUpdate{Sweeper: s, tx: tx, release: &r, group: g, events: map[string]event.Type{}}, i, nil
}

func (w *sweepUpdate) save(ctx context.Context) error {
	if err := w.oweOrphaned(ctx); err != nil {
		return err
	}

	if err := w.putSweep(ctx, w.tx, w.release); err != nil {
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
			// They move no coin.
		case wallet.Payout, wallet.Bump, wallet.Cancel, wallet.Recovery:
			// No step of a release.
		}
	}
}

// advance applies a transaction that is signed and not final. The first one starts the settlements. A
// sweep that was confirmed and left the chain reverts them.
func (w *sweepUpdate) advance(ctx context.Context, before settlement.Step, t wallet.Transaction) error {
	carry := w.release.CarryIn
	swept := t.Kind == wallet.Sweep && before.State == wallet.Confirmed

	for i := range w.group {
		s := &w.group[i]
		switch {
		case (s.Status == settlement.Pending || s.Status == settlement.Held) && s.SweepID == w.release.ID:
			if err := s.Start(carry); err != nil {
				return err
			}

			carry = chain.Amount{}
		case s.Status == settlement.Released && swept:
			if err := s.Revert(""); err != nil {
				return err
			}

			w.events[s.ID] = event.SettlementReverted
		}
	}

	if swept && w.release.Done {
		w.release.Done = false // its transactions are on their way again
		if err := w.takeBackCarry(ctx); err != nil {
			return err
		}
	}

	return nil
}

// confirm applies a final transaction. After the sweep the release is done; after any other step it
// waits for the next.
func (w *sweepUpdate) confirm(ctx context.Context, i int, t wallet.Transaction) error {
	step := &w.release.Steps[i]
	again, was := step.Recorded, step.NetworkFee // it was confirmed before, and left the chain in between
	w.setNetworkFee(step, t.Fee)

	if again && w.ofNative() && step.Kind != chain.StepSweep {
		if err := w.correctResidue(ctx, was, t.Fee); err != nil {
			return err
		}
	} else if err := w.recordResidue(ctx, step, t); err != nil {
		return err
	}

	if !again {
		w.payFee(step)
	}

	step.Recorded = true
	if step.Kind != chain.StepSweep {
		if !w.waitsForPayments(w.group) {
			return w.abandon(ctx, settlement.Replanning)
		}

		return nil
	}

	arrived := arrivedBy(w.release, t)
	if arrived.IsZero() {
		// The token reported success and moved nothing.
		return w.abandon(ctx, settlement.TransactionFailed)
	}

	if err := w.releaseSettlements(arrived); err != nil {
		return err
	}

	w.release.Done = true

	if err := w.setUnclaimed(ctx, step, w.unreleased(arrived)); err != nil {
		return err
	}

	return w.addCarry(ctx)
}

// releaseSettlements releases the settlements whose payments are in the chain, with their shares of what arrived at
// the master wallet, in base units.
func (w *sweepUpdate) releaseSettlements(arrived chain.Amount) error {
	for j, net := range w.group.net(arrived.Add(w.release.Claimed)) {
		s := &w.group[j]
		if s.Status == settlement.Reverted && s.Reason == "" { // the sweep was taken back, and is here again
			if err := s.Return(false, true, time.Time{}); err != nil {
				return err
			}

			if err := s.Start(chain.Amount{}); err != nil {
				return err
			}
		}

		if s.Status != settlement.Releasing {
			continue // its payment is gone; should it confirm again, this sweep stands for it
		}

		if err := s.Release(net, w.now()); err != nil {
			return err
		}

		w.events[s.ID] = event.SettlementReleased
	}

	return nil
}

// fail applies a transaction that is proven dead, was never signed, or was reverted. It abandons the
// release, except after a reverted sweep that closed its account. A reverted transaction cost its
// network fee.
func (w *sweepUpdate) fail(ctx context.Context, i int, t wallet.Transaction) error {
	step := &w.release.Steps[i]
	again, was := step.Recorded, step.NetworkFee // it was confirmed before, and left the chain for good
	w.setNetworkFee(step, t.Fee)

	var err error

	switch {
	case t.Failure == wallet.FailReverted:
		err = errors.Join(w.recordResidue(ctx, step, t), w.setUnclaimed(ctx, step, chain.Amount{}))
	case again && w.ofNative() && step.Kind != chain.StepSweep:
		err = w.correctResidue(ctx, was.Add(step.PaysFee), chain.Amount{})
	case again:
		err = errors.Join(
			w.setResidue(ctx, step, chain.Amount{}, chain.Amount{}),
			w.setTokenResidue(ctx, step, chain.Amount{}, chain.Amount{}),
			w.setUnclaimed(ctx, step, chain.Amount{}),
		)
	}

	if err != nil {
		return err
	}

	if err := w.unpayFee(ctx, step, again); err != nil {
		return err
	}

	if w.release.Done {
		return nil // the release ended before; there is nothing to give up
	}

	if step.Kind == chain.StepDelegate {
		return w.unreserveStep(ctx, step) // the release goes on, and is topped up instead
	}

	if t.Failure == wallet.FailReverted && t.Order.Close && !again {
		// Anybody can make that happen, by a payment while it is on its way: the release goes on,
		// and leaves the account open.
		return nil
	}

	return w.abandon(ctx, w.reason(t))
}

// reason returns the settlement's reason for a failure code (specification 2.8).
func (w *sweepUpdate) reason(t wallet.Transaction) settlement.Reason {
	switch {
	case t.Failure == wallet.FailNotPayable:
		return settlement.NotReleasable
	case t.Failure == wallet.FailCanceled,
		t.Failure == wallet.FailStale,
		t.Failure == wallet.FailInsufficientFunds:
		return settlement.Replanning // spec 2.8.12
	case t.Failure == wallet.FailConflict,
		t.Failure == wallet.FailExpired,
		t.Failure == wallet.FailReverted,
		strings.HasPrefix(t.Failure, wallet.FailSignerRefused):
		return settlement.TransactionFailed // spec 2.8.11
	}

	return settlement.Unclassified
}
