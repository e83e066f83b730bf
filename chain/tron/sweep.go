package tron

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// PlanSweep returns the remaining steps of a release.
//
// A native deposit pays its own fees: first the platform fee, if any, then a sweep of the remainder. For a
// token deposit the master wallet pays: it tops up the TRX that the deposit address lacks, or brings energy to
// it, pays the platform fee, and then the tokens are swept. Energy is simulated, so that the sum of the steps'
// fees is the burn of the release, the activation of the deposit's account included.
//
// Where several nodes are configured the plan is one that two of them lead to. While one alone answers there is none:
// it cannot end either, and what one node makes up would strand coin or have the sweep fail.
//
// Other money at the address may be another deposit and is not used. A native release moves Amount less
// Spent; a token release has Residue for its fee. Beside the errors of chain.Sweeper, an address that holds
// less than its deposits is fault.State (funds_missing).
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

	seller := offersOf(d.provider)

	steps, _, err := askTwo(
		ctx, d, "the release from "+string(release.Deposit.Address),
		func(ctx context.Context, node *endpoint) ([]chain.SweepStep, error) {
			p := &sweepPlan{driver: d, node: node, release: release, asset: asset, provider: seller}
			if asset.Kind == chain.Native {
				return p.planNative(ctx)
			}

			return p.planToken(ctx)
		},
		func(_ context.Context, a, b word[[]chain.SweepStep]) ([]chain.SweepStep, bool) {
			return b.value, reflect.DeepEqual(a.value, b.value)
		},
	)

	return steps, err
}

// sweepPlan plans the steps of a release by what one node says.
type sweepPlan struct {
	*driver
	node    *endpoint
	release chain.SweepRequest
	asset   chain.Asset
	// provider is that of the configuration, asked once for all nodes.
	provider EnergyProvider
}

// planNative returns the steps of a native release.
func (p *sweepPlan) planNative(ctx context.Context) ([]chain.SweepStep, error) {
	release := p.release

	left := release.Amount.SubFloor(release.Spent)
	if left.IsZero() {
		return nil, uneconomic(release)
	}

	sweep, _, err := p.planStep(ctx, chain.StepSweep, chain.Order{
		From:        release.Deposit,
		Outputs:     []chain.Output{{To: release.Master.Address, AssetID: p.native.ID, Amount: left}},
		SubtractFee: true,
	})
	if err != nil {
		return nil, err
	}

	var steps []chain.SweepStep

	if !release.Fee.IsZero() && !slices.Contains(release.Done, chain.StepFee) {
		fee, _, err := p.planStep(ctx, chain.StepFee, chain.Order{
			From: release.Deposit,
			Outputs: []chain.Output{
				{To: release.FeeAddress, AssetID: p.native.ID, Amount: chaindata.Min(release.Fee, left)},
			},
		})
		if err != nil {
			return nil, err
		}

		// The fee step's MaxFee is deducted from the sweep. The plan after the fee step adds what
		// is not burnt.
		if left.SubFloor(release.Fee).Cmp(fee.Order.MaxFee) <= 0 {
			return nil, uneconomic(release)
		}

		fee.PaysFee = release.Fee
		left = left.Sub(release.Fee).Sub(fee.Order.MaxFee)
		steps = append(steps, fee)
	}

	if left.Cmp(sweep.Order.MaxFee) <= 0 {
		return nil, uneconomic(release)
	}

	sweep.Order.Outputs[0].Amount = left

	return append(steps, sweep), nil
}

// planToken returns the steps of a token release.
func (p *sweepPlan) planToken(ctx context.Context) ([]chain.SweepStep, error) {
	release := p.release

	sweep, quote, err := p.planStep(ctx, chain.StepSweep, chain.Order{
		From:    release.Deposit,
		Outputs: []chain.Output{{To: release.Master.Address, AssetID: p.asset.ID, Amount: release.Amount}},
	})
	if err != nil {
		return nil, err
	}

	energy, brought, err := p.planEnergy(ctx, quote)
	if err != nil {
		return nil, err
	}

	if brought {
		sweep.NetworkFee = sweep.NetworkFee.Sub(quote.energyFee())
	}

	var steps []chain.SweepStep

	coin, active, err := p.spendableTRX(ctx)
	if err != nil {
		return nil, err
	}

	// The top-up is what the sweep burns as simulated now, without margin: only the deposit's own key can
	// use up its allowance, and what is left over stays at an address that is not used again. If the sweep
	// burns more when it is signed, it is refused there, and another top-up is planned.
	missing := sweep.NetworkFee.SubFloor(coin)
	if brought && !active {
		missing = chaindata.Max(missing, chain.Units(activationSun)) // energy goes to active accounts only
	}

	if !missing.IsZero() {
		step, _, err := p.planStep(ctx, chain.StepTopUp, chain.Order{
			From:    release.Master,
			Outputs: []chain.Output{{To: release.Deposit.Address, AssetID: p.native.ID, Amount: missing}},
		})
		if err != nil {
			return nil, err
		}

		steps = append(steps, step)
	}

	if brought {
		steps = append(steps, energy)
	}

	if !release.Fee.IsZero() && !slices.Contains(release.Done, chain.StepFee) {
		step, _, err := p.planStep(ctx, chain.StepFee, chain.Order{
			From:    release.Master,
			Outputs: []chain.Output{{To: release.FeeAddress, AssetID: p.native.ID, Amount: release.Fee}},
		})
		if err != nil {
			return nil, err
		}

		step.PaysFee = release.Fee
		steps = append(steps, step)
	}

	return append(steps, sweep), nil
}

// spendableTRX returns the sun that a token sweep may burn: the residue as far as the address holds it. After a
// top-up it is the whole balance, and at least the residue: blocks proved the top-up, and a node that says less must
// not cause another one. active is false before the address is an account.
func (p *sweepPlan) spendableTRX(ctx context.Context) (sun chain.Amount, active bool, err error) {
	deposit, err := parseAddress(string(p.release.Deposit.Address))
	if err != nil {
		return chain.Amount{}, false, err
	}

	account, err := p.node.account(ctx, full, deposit)
	if slices.Contains(p.release.Done, chain.StepTopUp) {
		return chaindata.Max(account.balance, p.release.Residue), account.exists, err
	}

	return chaindata.Min(account.balance, p.release.Residue), account.exists, err
}

// planStep returns a step with its expected and its largest fee, and what they follow from.
func (p *sweepPlan) planStep(
	ctx context.Context,
	kind chain.StepKind,
	order chain.Order,
) (chain.SweepStep, feeQuote, error) {
	release := p.release
	step := chain.SweepStep{Kind: kind, Order: order}

	payment, err := p.paymentOf(order)
	if err != nil {
		return step, feeQuote{}, notSweepable(err, release, kind)
	}

	// Steps of the master wallet are planned before it is funded.
	payment.fundedLater = order.From.Address == release.Master.Address

	quote, err := p.quote(ctx, p.node, payment)
	switch {
	case errors.Is(err, fault.Invalid):
		return step, quote, notSweepable(err, release, kind)
	case errors.Is(err, fault.State) && kind != chain.StepDelegate:
		return step, quote, fault.New(
			fault.State, "funds_missing",
			"%s holds %s base units of %s, less than its deposits of %s explain after %s were spent",
			release.Deposit.Address, quote.assetBalance, release.Asset.Symbol, release.Amount, release.Spent,
		)
	case err != nil:
		return step, quote, err
	}

	step.NetworkFee, step.Order.MaxFee = quote.fees(payment)

	return step, quote, nil
}

func notSweepable(cause error, release chain.SweepRequest, kind chain.StepKind) error {
	return fault.Wrap(
		cause, fault.Invalid, "not_releasable", "the %s of a release from %s cannot be made",
		kind, release.Deposit.Address,
	)
}

func uneconomic(release chain.SweepRequest) error {
	return fault.New(
		fault.State, "uneconomic",
		"the deposit of %s base units at %s does not cover the fees of its release",
		release.Amount, release.Deposit.Address,
	)
}
