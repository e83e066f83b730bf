package tron

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// PlanRelease plans the steps that are still to be done.
//
// A native deposit pays for itself: a transaction with the platform fee when there is one, then a
// sweep of all that is left of the deposit. A token deposit is paid for by the master wallet: the
// TRX that the deposit address lacks, the platform fee, then the tokens. What energy costs is
// simulated, so that the sum of the steps' fees is what the release burns, the activation of the
// deposit's account by its first TRX included. Other money at the address, which may be somebody's
// deposit, is never counted on: a native release moves Amount less Spent, a token release has
// Residue for its fee.
//
// Beyond what chain.Sweeper says, an address that holds less than its deposits explain is
// fault.State with code funds_missing.
func (d *Driver) PlanRelease(ctx context.Context, r chain.Release) ([]chain.ReleaseStep, error) {
	if slices.Contains(r.Done, chain.StepSweep) {
		return nil, nil
	}

	asset, ok := d.network.AssetByID(r.Asset.ID)
	if !ok {
		return nil, fault.New(
			fault.Invalid, "not_releasable", "network %s has no asset with id %q",
			d.network.Slug, r.Asset.ID,
		)
	}

	var steps []chain.ReleaseStep

	err := d.ask(ctx, 0, func(ctx context.Context, e *endpoint) (err error) {
		if asset.Kind == chain.Native {
			steps, err = d.planNative(ctx, e, r)
		} else {
			steps, err = d.planToken(ctx, e, r, asset)
		}

		return err
	})
	if err != nil {
		return nil, err
	}

	return steps, nil
}

func (d *Driver) planNative(ctx context.Context, e *endpoint, r chain.Release) ([]chain.ReleaseStep, error) {
	left := r.Amount.SubFloor(r.Spent)
	if left.IsZero() {
		return nil, uneconomic(r)
	}

	sweep, err := d.plan(ctx, e, r, chain.StepSweep, chain.Order{
		From:        r.Deposit,
		Outputs:     []chain.Output{{To: r.Master.Address, AssetID: d.native.ID, Amount: left}},
		SubtractFee: true,
	})
	if err != nil {
		return nil, err
	}

	var steps []chain.ReleaseStep

	if !r.Fee.IsZero() && !slices.Contains(r.Done, chain.StepFee) {
		fee, err := d.plan(ctx, e, r, chain.StepFee, chain.Order{
			From:    r.Deposit,
			Outputs: []chain.Output{{To: r.FeeAddress, AssetID: d.native.ID, Amount: chain.Min(r.Fee, left)}},
		})
		if err != nil {
			return nil, err
		}
		// What the fee step may cost at most is kept from the sweep; planned again after it, the
		// sweep gets the rest.
		if left.SubFloor(r.Fee).Cmp(fee.Order.MaxFee) <= 0 {
			return nil, uneconomic(r)
		}

		fee.PaysFee = r.Fee
		left = left.Sub(r.Fee).Sub(fee.Order.MaxFee)
		steps = append(steps, fee)
	}

	if left.Cmp(sweep.Order.MaxFee) <= 0 {
		return nil, uneconomic(r)
	}

	sweep.Order.Outputs[0].Amount = left

	return append(steps, sweep), nil
}

func (d *Driver) planToken(
	ctx context.Context,
	e *endpoint,
	r chain.Release,
	asset chain.Asset,
) ([]chain.ReleaseStep, error) {
	sweep, err := d.plan(ctx, e, r, chain.StepSweep, chain.Order{
		From:    r.Deposit,
		Outputs: []chain.Output{{To: r.Master.Address, AssetID: asset.ID, Amount: r.Amount}},
	})
	if err != nil {
		return nil, err
	}

	var steps []chain.ReleaseStep

	coin, err := d.coinAt(ctx, e, r)
	if err != nil {
		return nil, err
	}

	toppedUp := slices.Contains(r.Done, chain.StepTopUp)
	if missing := sweep.Order.MaxFee.SubFloor(
		coin,
	); !missing.IsZero() &&
		(!toppedUp || coin.Less(sweep.NetworkFee)) {
		step, err := d.plan(ctx, e, r, chain.StepTopUp, chain.Order{
			From:    r.Master,
			Outputs: []chain.Output{{To: r.Deposit.Address, AssetID: d.native.ID, Amount: missing}},
		})
		if err != nil {
			return nil, err
		}

		steps = append(steps, step)
	}

	if !r.Fee.IsZero() && !slices.Contains(r.Done, chain.StepFee) {
		step, err := d.plan(ctx, e, r, chain.StepFee, chain.Order{
			From:    r.Master,
			Outputs: []chain.Output{{To: r.FeeAddress, AssetID: d.native.ID, Amount: r.Fee}},
		})
		if err != nil {
			return nil, err
		}

		step.PaysFee = r.Fee
		steps = append(steps, step)
	}

	return append(steps, sweep), nil
}

// coinAt is the TRX that a token sweep may burn: the residue, as far as it is really there; after a
// top-up, which no deposit explains either, all that the address holds.
func (d *Driver) coinAt(ctx context.Context, e *endpoint, r chain.Release) (chain.Amount, error) {
	deposit, err := parseAddress(string(r.Deposit.Address))
	if err != nil {
		return chain.Amount{}, err
	}

	a, err := e.account(ctx, full, deposit)
	if err != nil || slices.Contains(r.Done, chain.StepTopUp) {
		return a.balance, err
	}

	return chain.Min(a.balance, r.Residue), nil
}

// plan completes a step with what it will cost and may cost at most.
func (d *Driver) plan(
	ctx context.Context,
	e *endpoint,
	r chain.Release,
	kind chain.StepKind,
	order chain.Order,
) (chain.ReleaseStep, error) {
	step := chain.ReleaseStep{Kind: kind, Order: order}

	s, err := d.spendOf(order)
	if err != nil {
		return step, notReleasable(err, r, kind)
	}
	// planned also while the master wallet cannot pay for it yet
	s.later = order.From.Address == r.Master.Address

	v, err := d.survey(ctx, e, s)
	switch {
	case errors.Is(err, fault.Invalid):
		return step, notReleasable(err, r, kind)
	case errors.Is(err, fault.State):
		return step, fault.New(
			fault.State, "funds_missing",
			"%s holds %s base units of %s, less than its deposits of %s explain after %s were spent",
			r.Deposit.Address, v.held, r.Asset.Symbol, r.Amount, r.Spent,
		)
	case err != nil:
		return step, err
	}

	step.NetworkFee, step.Order.MaxFee = v.cost(s)

	return step, nil
}

func notReleasable(cause error, r chain.Release, kind chain.StepKind) error {
	return fault.Wrap(
		cause, fault.Invalid, "not_releasable", "the %s of a release from %s cannot be made",
		kind, r.Deposit.Address,
	)
}

func uneconomic(r chain.Release) error {
	return fault.New(
		fault.State, "uneconomic",
		"the deposit of %s base units at %s does not cover the fees of its release",
		r.Amount, r.Deposit.Address,
	)
}
