package sweep

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file decides when a platform fee is carried, and records what is: a fee that is too small to be paid by
// itself is added to one row per account, mode and network, and paid with a later release.

// withFee plans a release with as much of the platform fee as makes sense. It tries the fee with the
// carry, then without the carry, then no fee where the deposit cannot pay it: earlier sweeps may have taken
// nearly all of that. It pays no fee without a fee address, or where paying costs more than the fee.
func (p *planningRun) withFee(
	ctx context.Context,
	r *settlement.Sweep,
	g group,
	coins []chain.Coin,
	asset chain.Asset,
	carry chain.Amount,
) ([]chain.SweepStep, error) {
	r.Fee, r.CarryIn = g.fee().Add(carry), carry
	if r.FeeAddress == "" {
		r.Fee, r.CarryIn = chain.Amount{}, chain.Amount{}
	}

	steps, err := p.planSteps(ctx, r, g, coins, asset, nil)

	for _, fee := range []chain.Amount{g.fee(), {}} {
		if fault.Code(err) == "uneconomic" && fee.Less(r.Fee) {
			r.Fee, r.CarryIn = fee, chain.Amount{}
			steps, err = p.planSteps(ctx, r, g, coins, asset, nil)
		}
	}

	if err == nil && notWorthSending(steps) {
		r.Fee, r.CarryIn = chain.Amount{}, chain.Amount{}
		steps, err = p.planSteps(ctx, r, g, coins, asset, nil)
	}

	if err == nil && paysFee(steps).IsZero() {
		// below the network's dust limit: the driver left it out
		r.Fee, r.CarryIn = chain.Amount{}, chain.Amount{}
	}

	return steps, err
}

// notWorthSending reports whether a transaction that does nothing but pay the platform fee costs
// more than it pays.
func notWorthSending(steps []chain.SweepStep) bool { // spec D4.13
	for _, s := range steps {
		if s.Kind == chain.StepFee && !s.NetworkFee.Less(s.PaysFee) {
			return true
		}
	}

	return false
}

// addCarry adds the fee that the release did not pay, and will not pay by what is under way, to the carry.
func (w *sweepUpdate) addCarry(ctx context.Context) error {
	if w.group.fee().IsZero() {
		return nil
	}

	waiting, err := feesWaiting(ctx, w.tx, w.release, w.group...)
	if err != nil {
		return err
	}

	return w.updateCarry(ctx, func(c chain.Amount) chain.Amount {
		for i := range w.group {
			left := settlementstate.DueFee(w.group[i]).SubFloor(waiting[w.group[i].ID])
			settlementstate.CarryOut(&w.group[i], left)
			c = c.Add(left)
		}

		return c
	})
}

// takeBackCarry reverses addCarry, but for what a later release has taken: that pays it, whether this one is released
// again or not.
func (w *sweepUpdate) takeBackCarry(ctx context.Context) error {
	return w.updateCarry(ctx, func(c chain.Amount) chain.Amount {
		for i := range w.group {
			back := chaindata.Min(c, w.group[i].CarriedOut)
			settlementstate.TakeBack(&w.group[i], back)
			c = c.Sub(back)
		}

		return c
	})
}

// updateCarry locks the carry of the release's owner and network, and stores what f makes of it (native
// base units).
func (w *sweepUpdate) updateCarry(ctx context.Context, f func(chain.Amount) chain.Amount) error {
	if !slices.ContainsFunc(w.group, func(s settlement.Settlement) bool { return !s.FeeCarried.IsZero() }) {
		return nil
	}

	row, err := lockCarry(ctx, w.tx, w.release.Owner, w.release.Network)
	if err != nil {
		return err
	}

	amount := f(row.Amount)
	if amount == row.Amount {
		return nil
	}

	row.Amount = amount

	return w.tx.PutCarry(ctx, &row)
}

// lockCarry locks and returns the fee carried for an owner on a network; a new record when there is none.
func lockCarry(
	ctx context.Context,
	tx settlement.Tx,
	owner event.Owner,
	network string,
) (settlement.CarriedFee, error) {
	row, ok, err := tx.CarryForUpdate(ctx, owner, network)
	if !ok {
		row = settlement.CarriedFee{Owner: owner, Network: network}
	}

	return row, err
}

// takeCarryTx takes what a release pays of earlier settlements' fees off the fee that waits for a later release.
// Records that were restored may know less of it, or nothing.
func takeCarryTx(ctx context.Context, tx settlement.Tx, r *settlement.Sweep) error {
	if r.CarryIn.IsZero() {
		return nil
	}

	row, err := lockCarry(ctx, tx, r.Owner, r.Network)
	if err != nil {
		return err
	}

	row.Amount = row.Amount.SubFloor(r.CarryIn)

	return tx.PutCarry(ctx, &row)
}

// returnCarryTx adds amount (native base units) to the fee that waits for a later release.
func returnCarryTx(ctx context.Context, tx settlement.Tx, r *settlement.Sweep, amount chain.Amount) error {
	row, err := lockCarry(ctx, tx, r.Owner, r.Network)
	if err != nil {
		return err
	}

	row.Amount = row.Amount.Add(amount)

	return tx.PutCarry(ctx, &row)
}

// bearer returns the index of the settlement that takes a carried fee (native base units) over: the oldest of those
// that may, which has it left when it has paid its own fee, or else the largest; -1 where none may.
func (g group) bearer(carry chain.Amount, may func(s settlement.Settlement) bool) int {
	largest := -1

	for i, s := range g {
		switch {
		case !may(s):
		case s.FeeSource == settlement.FromMaster || !s.Gross.SubFloor(s.FeeNative).Less(carry):
			return i
		case largest < 0 || g[largest].Gross.Less(s.Gross):
			largest = i
		}
	}

	return largest
}

// carryOrphaned adds carried fee (native base units) that a release pays and no settlement has started with to the
// oldest one: its payment left the chain just before the first transaction was signed, and the fee counts once it is
// back.
func (w *sweepUpdate) carryOrphaned(carry chain.Amount) {
	taken := slices.ContainsFunc(w.group, func(s settlement.Settlement) bool { return !s.CarriedIn.IsZero() })
	if carry.IsZero() || taken || len(w.group) == 0 || w.group[0].Status != settlement.Failed {
		return
	}

	settlementstate.CarryIn(&w.group[0], carry)
}
