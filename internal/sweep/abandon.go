package sweep

import (
	"context"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/settlement"
)

// abandon ends a release without success, between two transactions.
func (p *planningRun) abandon(ctx context.Context, r settlement.Sweep, reason settlement.Reason) error {
	return p.abandonFor(ctx, r, reason, nil)
}

// abandonFor is abandon with the error that the release failed with.
func (p *planningRun) abandonFor(
	ctx context.Context,
	r settlement.Sweep,
	reason settlement.Reason,
	cause error,
) error {
	return p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		now, err := tx.Sweep(ctx, r.ID)
		if err != nil || now.Version != r.Version {
			return err
		}

		w, err := p.updateOf(ctx, tx, now)
		if err != nil {
			return err
		}

		if cause != nil {
			w.why = txmgr.PublicText(cause)
		}

		if err := w.abandon(ctx, reason); err != nil {
			return err
		}

		return w.save(ctx)
	})
}

// abandon ends a release without success. Reservations and the carry go back. The settlements fail, or are
// queued again when nothing was signed and they can be planned anew. It is not done while a fork has its platform fee
// under way again: that may still pay what a release planned anew would pay once more.
func (w *sweepUpdate) abandon(ctx context.Context, reason settlement.Reason) error {
	r := w.release
	r.Done = !hasFeeWaiting(r)

	if err := w.unreserve(ctx); err != nil {
		return err
	}

	if err := w.returnOwed(ctx); err != nil {
		return err
	}

	back, err := w.failSettlements(ctx, reason)
	if err != nil {
		return err
	}

	if !isStarted(r) {
		back = back.Add(r.CarryIn)
	}

	if back.IsZero() {
		return nil
	}

	// A later release pays it. A fork may bring this one back, for its own fee alone.
	r.Fee, r.CarryIn = r.Fee.SubFloor(back), r.CarryIn.SubFloor(back)

	return returnCarryTx(ctx, w.tx, r, back)
}

// failSettlements fails or queues the release's settlements. It returns the platform fee that they
// had taken over from earlier ones and not paid, in native base units.
func (w *sweepUpdate) failSettlements(
	ctx context.Context,
	reason settlement.Reason,
) (back chain.Amount, err error) {
	due := time.Time{}
	if reason == settlement.Replanning {
		due = w.now()
	}

	for i := range w.group {
		s := &w.group[i]

		if s.SweepID != w.release.ID {
			continue // a fork has transactions of this one under way again, and another release has it now
		}

		// One whose payment is gone has failed already.
		if s.Status == settlement.Releasing || s.Status == settlement.Failed {
			carried, err := giveBack(ctx, w.tx, w.release, s)
			if err != nil {
				return back, err
			}

			back = back.Add(carried)
		}

		switch s.Status {
		case settlement.Pending, settlement.Held:
			if reason == settlement.Replanning {
				if err := settlementstate.Unassign(s, w.now()); err != nil {
					return back, err
				}

				continue
			}
		case settlement.Releasing:
		case settlement.Reverted:
			if s.Reason == settlement.PaymentOrphaned {
				continue
			}

			if err := s.Return(false, false, w.now()); err != nil {
				return back, err
			}

			continue
		default:
			continue
		}

		if err := settlementstate.Fail(s, reason, w.now(), due); err != nil {
			return back, err
		}

		s.ReasonMessage = w.why
		w.events[s.ID] = event.SettlementFailed
	}

	return back, nil
}

// unreserve returns what the release reserved of the master wallet and did not spend.
func (w *sweepUpdate) unreserve(ctx context.Context) error {
	n, _ := w.registry.Network(w.release.Network)

	native, _ := n.Native()
	for _, object := range append(unconfirmedIDs(w.release), w.release.ID) {
		if err := w.outbox.UnreserveTx(
			ctx, w.tx, w.release.Network, w.release.Master.Address, native.ID, object,
		); err != nil {
			return err
		}
	}

	return nil
}

// unconfirmedIDs returns the ids of the release's unconfirmed transactions. Reservations of confirmed
// ones end with their inclusion.
func unconfirmedIDs(r *settlement.Sweep) []string {
	var ids []string

	for _, s := range r.Steps {
		if s.State != wallet.Confirmed {
			ids = append(ids, s.TransactionID)
		}
	}

	return ids
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
