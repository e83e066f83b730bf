package sweep

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// reopenTx brings a settlement back whose payment is confirmed again, into the queue where releases are
// automatic or one was asked for. One that failed otherwise stays so, with the payment's amount. Any other settlement
// is returned unchanged.
func (s *Sweeper) reopenTx(
	ctx context.Context,
	tx settlement.Tx,
	old settlement.Settlement,
	o OpenParams,
) (settlement.Settlement, error) {
	orphaned := old.Status == settlement.Failed && old.Reason == settlement.PaymentOrphaned

	switch {
	case old.FailedFor != "":
		return s.failAgainTx(ctx, tx, old, o)
	case old.Status != settlement.Reverted && !orphaned:
		return s.correctFailedTx(ctx, tx, old, o)
	}

	old.ConfirmedAt = o.ConfirmedAt
	if old.Simulated {
		return s.reopenSimulatedTx(ctx, tx, old)
	}

	r, assigned, err := releaseOf(ctx, tx, old)
	if err != nil {
		return settlement.Settlement{}, err
	}

	if assigned {
		if out, joined, err := s.joinOrLeaveTx(ctx, tx, &old, r, o); err != nil || joined {
			return out, err
		}
	} else {
		if err := s.withSpentTx(ctx, tx, old); err != nil {
			return settlement.Settlement{}, err
		}
	}

	settings, err := tx.SettlementSettings(ctx, o.Owner.AccountID)
	if err != nil {
		return settlement.Settlement{}, err
	}

	// What no person has asked for yet waits for one, as when it was opened.
	var due time.Time
	if settings.AutoRelease || assigned || old.Status == settlement.Reverted {
		due = s.now()
	}

	if err := old.Return(false, false, due); err != nil {
		return settlement.Settlement{}, err
	}

	if err := s.revalueTx(ctx, tx, &old, o, r.ID); err != nil {
		return settlement.Settlement{}, err
	}

	if assigned {
		if err := s.oweFailedTx(ctx, tx, r, old); err != nil {
			return settlement.Settlement{}, err
		}
	}

	return old, tx.PutSettlements(ctx, &old)
}

// joinOrLeaveTx returns a settlement to its release where that still runs, or its sweep is confirmed after all: it has
// moved or will move this deposit, which must not be planned a second time. joined is false where that is over, or the
// settlement left it.
func (s *Sweeper) joinOrLeaveTx(
	ctx context.Context,
	tx settlement.Tx,
	old *settlement.Settlement,
	r settlement.Sweep,
	o OpenParams,
) (out settlement.Settlement, joined bool, err error) {
	joins, err := s.goesOn(ctx, tx, r)
	if err != nil || !joins {
		return settlement.Settlement{}, false, err
	}

	out, joined, err = s.rejoinTx(ctx, tx, *old, r, o)
	if err != nil || joined {
		return out, joined, err
	}

	return settlement.Settlement{}, false, s.leaveTx(ctx, tx, old, r)
}

// goesOn reports whether a release moved, or may still move, what its settlements hold. One that was given up while
// others waited is over, even where a fork has one of its fees under way again.
func (s *Sweeper) goesOn(ctx context.Context, tx settlement.Tx, r settlement.Sweep) (bool, error) {
	if r.Done || hasLiveSweep(&r) {
		return isSwept(&r) || !r.Done, nil
	}

	g, err := tx.SettlementsByID(ctx, r.SettlementIDs)

	return !slices.ContainsFunc(g, func(of settlement.Settlement) bool { return of.SweepID != r.ID }), err
}

// failAgainTx returns a settlement that had failed before its payment was gone to what it had failed for.
func (s *Sweeper) failAgainTx(
	ctx context.Context,
	tx settlement.Tx,
	old settlement.Settlement,
	o OpenParams,
) (settlement.Settlement, error) {
	if err := settlementstate.Reopen(&old); err != nil {
		return settlement.Settlement{}, err
	}

	old.ConfirmedAt = o.ConfirmedAt

	r, assigned, err := releaseOf(ctx, tx, old)
	if err != nil {
		return settlement.Settlement{}, err
	}

	if assigned {
		if err := s.oweFailedTx(ctx, tx, r, old); err != nil {
			return settlement.Settlement{}, err
		}
	}

	if err := tx.PutSettlements(ctx, &old); err != nil {
		return settlement.Settlement{}, err
	}

	return s.correctFailedTx(ctx, tx, old, o)
}

// correctFailedTx gives a failed settlement the amount of its payment, of which a fork made another, unless a sweep
// moves it: who retries it releases all of it. Other transactions of its release may be under way again.
func (s *Sweeper) correctFailedTx(
	ctx context.Context,
	tx settlement.Tx,
	old settlement.Settlement,
	o OpenParams,
) (settlement.Settlement, error) {
	if old.Status != settlement.Failed || old.Simulated || old.Gross == o.Gross {
		return old, nil
	}

	r, assigned, err := releaseOf(ctx, tx, old)
	if err != nil || assigned && (isSwept(&r) || hasLiveSweep(&r)) {
		return old, err
	}

	if err := s.revalueTx(ctx, tx, &old, o, r.ID); err != nil {
		return settlement.Settlement{}, err
	}

	return old, tx.PutSettlements(ctx, &old)
}

// revalueTx gives a settlement that moved nothing the amount and the prices of its payment as it confirmed
// again: on another branch something else may have arrived. A platform fee that was paid, or is under way, stays as it
// was. sweepID is the release that it is or was in, or empty.
func (s *Sweeper) revalueTx(
	ctx context.Context,
	tx settlement.Tx,
	old *settlement.Settlement,
	o OpenParams,
	sweepID string,
) error {
	if err := s.changeGross(ctx, tx, old, o.Gross, sweepID); err != nil {
		return err
	}

	if !old.FeePaid.IsZero() || !old.CarriedOut.IsZero() || old.FeeCarried != old.FeeNative {
		return nil
	}

	if waiting, err := feeWaiting(ctx, tx, nil, *old); err != nil || !waiting.IsZero() {
		return err
	}

	n, ok := s.registry.Network(o.Network)
	if !ok {
		return fault.New(fault.NotFound, "network_unknown", "network %q is not enabled here", o.Network)
	}

	native, _ := n.Native()
	old.USDValue, old.NativePrice = o.USDValue, o.NativePrice
	old.FeeUSD = settlementstate.FeeUSD(o.USDValue, old.FeeBPS)

	fee, err := settlementstate.FeeNative(old.FeeUSD, o.NativePrice, native.Decimals)
	if err != nil {
		return err
	}

	old.FeeNative, old.FeeCarried = fee, fee

	return nil
}

// reopenSimulatedTx releases a simulated settlement once more.
func (s *Sweeper) reopenSimulatedTx(
	ctx context.Context,
	tx settlement.Tx,
	old settlement.Settlement,
) (settlement.Settlement, error) {
	if err := old.Return(false, false, time.Time{}); err != nil {
		return settlement.Settlement{}, err
	}

	settlementstate.Unpay(&old, old.FeePaid)

	if err := simulate(&old, s.now()); err != nil {
		return settlement.Settlement{}, err
	}

	return old, s.putTx(ctx, tx, &old, event.SettlementReleased)
}

// rejoinTx returns a settlement to its release. It is released at once if the sweep is confirmed. joined is false
// when that sweep stands for later settlements: then nothing is written.
func (s *Sweeper) rejoinTx(
	ctx context.Context,
	tx settlement.Tx,
	old settlement.Settlement,
	r settlement.Sweep,
	o OpenParams,
) (out settlement.Settlement, joined bool, err error) {
	if claimed, err := s.anyClaimed(ctx, tx, r); err != nil || claimed {
		return settlement.Settlement{}, false, err
	}

	if !hasLiveSweep(&r) { // its sweep is still to be planned
		r.Amount = r.Amount.Sub(old.Gross).Add(o.Gross)
	}

	// What its transactions move is in the release.
	if err := s.changeGross(ctx, tx, &old, o.Gross, r.ID); err != nil {
		return settlement.Settlement{}, false, err
	}

	w, err := s.sweptUpdate(ctx, tx, r)
	if err != nil {
		return settlement.Settlement{}, false, err
	}

	if err := old.Return(false, true, time.Time{}); err != nil {
		return settlement.Settlement{}, false, err
	}

	if isStarted(&r) { // else its first signature starts it, with what the release carries
		if err := settlementstate.Start(&old, chain.Amount{}); err != nil {
			return settlement.Settlement{}, false, err
		}
	}

	if w == nil {
		r.DueAt = s.now() // it waited for this payment
		if err := s.putSweep(ctx, tx, &r); err != nil {
			return settlement.Settlement{}, false, err
		}

		return old, true, tx.PutSettlements(ctx, &old)
	}

	out, err = w.releaseBackTx(ctx, old)

	return out, err == nil, err
}

// releaseBackTx releases a settlement whose payment is back, and whose sweep is confirmed.
func (w *sweepUpdate) releaseBackTx(
	ctx context.Context,
	back settlement.Settlement,
) (settlement.Settlement, error) {
	if err := w.correctGross(ctx, chain.Amount{}, back.Gross); err != nil {
		return settlement.Settlement{}, err
	}

	step := sweptStep(w.release)

	net := w.claimed(back, step)
	if err := w.setUnclaimed(ctx, step, step.Unclaimed.Sub(net)); err != nil {
		return settlement.Settlement{}, err
	}

	if err := w.putSweep(ctx, w.tx, w.release); err != nil {
		return settlement.Settlement{}, err
	}

	if err := settlementstate.Release(&back, net, w.now()); err != nil {
		return settlement.Settlement{}, err
	}

	return back, w.putTx(ctx, w.tx, &back, event.SettlementReleased)
}

// leaveTx takes a settlement out of a release whose sweep stands for later settlements. What it paid there was
// theirs as well, and its own deposit is whole: the difference is residue, and stays with that release.
func (s *Sweeper) leaveTx(
	ctx context.Context,
	tx settlement.Tx,
	back *settlement.Settlement,
	r settlement.Sweep,
) error {
	if err := s.leaveNetworkFees(ctx, tx, &r, back); err != nil {
		return err
	}

	r.SettlementIDs = slices.DeleteFunc(
		slices.Clone(r.SettlementIDs), func(id string) bool { return id == back.ID },
	)

	paid := group{*back}.spent()
	r.Owed = r.Owed.Add(paid)

	if err := s.putSweep(ctx, tx, &r); err != nil {
		return err
	}

	n, _ := s.registry.Network(r.Network)

	return addResidue(ctx, tx, n, r.Deposit.Address, r.AssetID, paid, chain.Amount{})
}
