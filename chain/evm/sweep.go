package evm

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// PlanSweep returns the remaining steps of a release.
//
// A native deposit pays its own fees: a transaction with the platform fee, if any, then a sweep of the rest
// with an exact fee. For a token deposit the master wallet pays: a top-up of the gas that is missing at the
// deposit address, the platform fee, then the sweep.
//
// Other funds at the address may be somebody's deposit, so no step spends them. A native release moves Amount
// less Spent; a token release may use Residue for gas. Errors, besides chain.Sweeper's:
//
//   - fault.State (funds_missing): the address holds less than its deposits
func (d *driver) PlanSweep(ctx context.Context, release chain.SweepRequest) ([]chain.SweepStep, error) {
	if slices.Contains(release.Done, chain.StepSweep) {
		return nil, nil
	}

	asset, ok := d.network.AssetByID(release.Asset.ID)
	if !ok {
		return nil, fault.New(
			fault.Invalid, "not_releasable", "network %s has no asset with id %q",
			d.network.Slug, release.Asset.ID,
		)
	}

	var steps []chain.SweepStep

	err := d.nodes.AskFinal(ctx, d.attempts, 0, func(ctx context.Context, node *endpoint) (err error) {
		if asset.Kind == chain.Native {
			steps, err = d.planNative(ctx, node, release)
		} else {
			steps, err = d.planToken(ctx, node, release, asset)
		}

		return err
	})
	if err != nil {
		return nil, err
	}

	return steps, nil
}

// planNative returns the steps of a native deposit: platform fee, sweep.
func (d *driver) planNative(
	ctx context.Context,
	node *endpoint,
	release chain.SweepRequest,
) ([]chain.SweepStep, error) {
	remaining := release.Amount.SubFloor(release.Spent)
	if remaining.IsZero() {
		return nil, uneconomic(release)
	}

	sweep, err := d.planStep(ctx, node, release, chain.StepSweep, chain.Order{
		From:        release.Deposit,
		Outputs:     []chain.Output{{To: release.Master.Address, AssetID: d.native.ID, Amount: remaining}},
		SubtractFee: true,
	})
	if err != nil {
		return nil, err
	}

	var steps []chain.SweepStep

	if !release.Fee.IsZero() && !slices.Contains(release.Done, chain.StepFee) {
		fee, err := d.planStep(ctx, node, release, chain.StepFee, chain.Order{
			From: release.Deposit,
			Outputs: []chain.Output{
				{To: release.FeeAddress, AssetID: d.native.ID, Amount: chaindata.Min(release.Fee, remaining)},
			},
		})
		if err != nil {
			return nil, err
		}

		// The sweep's amount leaves out the maximum cost of the fee step. The sweep is planned again after
		// that step and then includes the unused part.
		available := remaining.SubFloor(release.Fee).SubFloor(sweep.NetworkFee)
		if available.Cmp(fee.NetworkFee) <= 0 {
			return nil, uneconomic(release)
		}

		fee.Order.MaxFee = chaindata.Min(fee.Order.MaxFee, available.Sub(chain.Units(1)))
		fee.PaysFee = release.Fee
		remaining = remaining.Sub(release.Fee).Sub(fee.Order.MaxFee)
		steps = append(steps, fee)
	}

	if remaining.Cmp(sweep.NetworkFee) <= 0 {
		return nil, uneconomic(release)
	}

	// The sweep pays at most half of its amount, or its current cost where that is more and still economic.
	half := chaindata.Max(remaining.Share(chain.Units(1), chain.Units(2)), sweep.NetworkFee)
	sweep.Order.Outputs[0].Amount = remaining
	sweep.Order.MaxFee = chaindata.Min(sweep.Order.MaxFee, chaindata.Min(half, remaining.Sub(chain.Units(1))))

	return append(steps, sweep), nil
}

// planToken returns the steps of a token deposit: top-up, platform fee, sweep.
func (d *driver) planToken(
	ctx context.Context,
	node *endpoint,
	release chain.SweepRequest,
	asset chain.Asset,
) ([]chain.SweepStep, error) {
	sweep, err := d.planStep(ctx, node, release, chain.StepSweep, chain.Order{
		From:    release.Deposit,
		Outputs: []chain.Output{{To: release.Master.Address, AssetID: asset.ID, Amount: release.Amount}},
	})
	if err != nil {
		return nil, err
	}

	var steps []chain.SweepStep

	gasBalance, err := d.spendableGas(ctx, node, release)
	if err != nil {
		return nil, err
	}

	toppedUp := slices.Contains(release.Done, chain.StepTopUp)
	missing := sweep.Order.MaxFee.SubFloor(gasBalance)

	if !missing.IsZero() && (!toppedUp || gasBalance.Less(sweep.NetworkFee)) {
		step, err := d.planStep(ctx, node, release, chain.StepTopUp, chain.Order{
			From:    release.Master,
			Outputs: []chain.Output{{To: release.Deposit.Address, AssetID: d.native.ID, Amount: missing}},
		})
		if err != nil {
			return nil, err
		}

		steps = append(steps, step)
	} else {
		sweep.Order.MaxFee = chaindata.Min(sweep.Order.MaxFee, gasBalance)
	}

	if !release.Fee.IsZero() && !slices.Contains(release.Done, chain.StepFee) {
		step, err := d.planStep(ctx, node, release, chain.StepFee, chain.Order{
			From:    release.Master,
			Outputs: []chain.Output{{To: release.FeeAddress, AssetID: d.native.ID, Amount: release.Fee}},
		})
		if err != nil {
			return nil, err
		}

		step.PaysFee = release.Fee
		steps = append(steps, step)
	}

	return append(steps, sweep), nil
}

// spendableGas returns the native coin, in wei, that a token sweep may spend. It is the residue, or the balance if
// lower. After a top-up, which is no deposit either, it is the whole balance, and at least the residue: blocks proved
// the top-up, and a node that says less must not cause another one.
func (d *driver) spendableGas(
	ctx context.Context,
	node *endpoint,
	release chain.SweepRequest,
) (chain.Amount, error) {
	rpcCall, err := d.balanceCall(
		chain.Holding{Address: release.Deposit.Address, AssetID: d.native.ID}, "latest",
	)
	if err != nil {
		return chain.Amount{}, err
	}

	if err := node.do(ctx, rpcCall); err != nil {
		return chain.Amount{}, err
	}

	balance, err := rpcCall.amount(node)
	if slices.Contains(release.Done, chain.StepTopUp) {
		return chaindata.Max(balance, release.Residue), err
	}

	return chaindata.Min(balance, release.Residue), err
}

// planStep returns a step with its maximum and its estimated network fee.
func (d *driver) planStep(
	ctx context.Context,
	node *endpoint,
	release chain.SweepRequest,
	kind chain.StepKind,
	order chain.Order,
) (chain.SweepStep, error) {
	step := chain.SweepStep{Kind: kind, Order: order}

	msg, err := d.messageOf(order)
	if err != nil {
		return step, notSweepable(err, release, kind)
	}

	// Plan the step even if the master wallet cannot pay for it yet.
	msg.fundedLater = order.From.Address == release.Master.Address

	quote, err := d.quote(ctx, node, msg)
	if order.SubtractFee && err == nil && quote.isContract() {
		err = notPayable(nil, release.Master.Address)
	}

	switch {
	case errors.Is(err, fault.Invalid):
		return step, notSweepable(err, release, kind)
	case errors.Is(err, fault.State) && order.From.Address == release.Deposit.Address:
		return step, fault.New(
			fault.State, "funds_missing",
			"%s holds %s base units of %s, less than its deposits of %s explain after %s were spent",
			release.Deposit.Address, quote.assetBalance, release.Asset.Symbol, release.Amount, release.Spent,
		)
	case err != nil:
		return step, err
	}

	step.Order.MaxFee, step.NetworkFee = quote.maxCost(chain.Amount{}), quote.expectedCost()
	if order.SubtractFee {
		step.NetworkFee = quote.sweepFeeCap().Mul(quote.gas).Add(quote.l1Fee)
	}

	return step, nil
}

// notSweepable returns fault.Invalid (not_releasable).
func notSweepable(cause error, release chain.SweepRequest, kind chain.StepKind) error {
	return fault.Wrap(
		cause, fault.Invalid, "not_releasable", "the %s of a release from %s cannot be made",
		kind, release.Deposit.Address,
	)
}

// uneconomic returns fault.State (uneconomic).
func uneconomic(release chain.SweepRequest) error {
	return fault.New(
		fault.State, "uneconomic",
		"the deposit of %s base units at %s does not cover the fees of its release",
		release.Amount, release.Deposit.Address,
	)
}
