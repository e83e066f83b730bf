package sim

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// PlanSweep returns the remaining steps of a sweep, as on Tron. A native deposit pays the platform fee, if
// any, and then the sweep of the remainder. For a token deposit the master wallet pays: a top-up of the
// gas that the deposit address lacks, the platform fee, then the token sweep. Only Amount less Spent of a
// native deposit is moved; the gas of a token sweep comes from Residue, or after a top-up from the
// whole balance.
//
// In addition to the errors of chain.Sweeper, an address that holds less than its deposits is
// fault.State with code funds_missing.
func (w *Windows) PlanSweep(ctx context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
	if err := w.call(ctx, MethodPlanSweep); err != nil {
		return nil, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if slices.Contains(r.Done, chain.StepSweep) {
		return nil, nil
	}

	asset, ok := w.network.AssetByID(r.Asset.ID)
	if !ok {
		return nil, fault.New(
			fault.Invalid, "not_releasable", "network %s has no asset with id %q",
			w.network.Slug, r.Asset.ID,
		)
	}

	remaining, plan := r.Amount, w.planToken
	if asset.Kind == chain.Native {
		remaining, plan = r.Amount.SubFloor(r.Spent), w.planNative
	}

	if balance := w.balance(r.Deposit.Address, asset.ID, w.nodeTip()); balance.Less(remaining) {
		return nil, fundsMissing(r, balance)
	}

	return plan(r, asset, remaining)
}

func (w *Windows) planNative(
	r chain.SweepRequest,
	asset chain.Asset,
	remaining chain.Amount,
) ([]chain.SweepStep, error) {
	var steps []chain.SweepStep

	if !r.Fee.IsZero() && !slices.Contains(r.Done, chain.StepFee) {
		step, err := w.planStep(r, chain.StepFee, r.Deposit, r.FeeAddress, asset, r.Fee)
		if err != nil {
			return nil, err
		}

		// The fee step may cost its maximum; the plan after it knows what it did cost.
		step.PaysFee = r.Fee
		steps = append(steps, step)
		remaining = remaining.SubFloor(r.Fee).SubFloor(step.Order.MaxFee)
	}

	if remaining.IsZero() {
		return nil, uneconomic(r)
	}

	sweep, err := w.planStep(r, chain.StepSweep, r.Deposit, r.Master.Address, asset, remaining)
	if err != nil {
		return nil, err
	}

	if remaining.Cmp(sweep.Order.MaxFee) <= 0 {
		return nil, uneconomic(r)
	}

	sweep.Order.SubtractFee = true

	return append(steps, sweep), nil
}

func (w *Windows) planToken(
	r chain.SweepRequest,
	asset chain.Asset,
	amount chain.Amount,
) ([]chain.SweepStep, error) {
	sweep, err := w.planStep(r, chain.StepSweep, r.Deposit, r.Master.Address, asset, amount)
	if err != nil {
		return nil, err
	}

	var steps []chain.SweepStep

	gas := w.balance(r.Deposit.Address, w.native.ID, w.nodeTip())

	toppedUp := slices.Contains(r.Done, chain.StepTopUp)
	if !toppedUp {
		gas = chaindata.Min(gas, r.Residue)
	}

	missing := sweep.Order.MaxFee.SubFloor(gas)
	if !missing.IsZero() && (!toppedUp || gas.Less(sweep.NetworkFee)) {
		step, err := w.planStep(r, chain.StepTopUp, r.Master, r.Deposit.Address, w.native, missing)
		if err != nil {
			return nil, err
		}

		steps = append(steps, step)
	}

	if !r.Fee.IsZero() && !slices.Contains(r.Done, chain.StepFee) {
		step, err := w.planStep(r, chain.StepFee, r.Master, r.FeeAddress, w.native, r.Fee)
		if err != nil {
			return nil, err
		}

		step.PaysFee = r.Fee
		steps = append(steps, step)
	}

	return append(steps, sweep), nil
}

// planStep returns a step that pays one output, with its network fee and maximum fee.
func (w *Windows) planStep(
	r chain.SweepRequest,
	kind chain.StepKind,
	from chain.Party,
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
) (chain.SweepStep, error) {
	order := chain.Order{
		From:    from,
		Outputs: []chain.Output{{To: to, AssetID: asset.ID, Amount: amount}},
	}

	tx, err := w.ledger.transactionOf(order)
	if err != nil {
		return chain.SweepStep{}, fault.Wrap(
			err, fault.Invalid, "not_releasable", "the %s of a release from %s cannot be made",
			kind, r.Deposit.Address,
		)
	}

	order.MaxFee = w.suggestedMaxFee(tx)

	return chain.SweepStep{
		Kind:       kind,
		Order:      order,
		NetworkFee: chain.Units(w.price).Mul(tx.gas()),
	}, nil
}
