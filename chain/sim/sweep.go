package sim

// Releases: how a deposit gets to the master wallet.

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// PlanRelease plans as on an EVM network. A native deposit pays the platform fee and its own way: a
// fee transaction when there is a fee, then a sweep of all that is left of the deposit. A token
// deposit is paid for by the master wallet: the gas that the deposit address lacks, the platform
// fee, then the sweep of the tokens.
//
// Beyond what chain.Sweeper says, an address that holds less than the release takes for granted is
// fault.State with code funds_missing.
func (c *Chain) PlanRelease(ctx context.Context, r chain.Release) ([]chain.ReleaseStep, error) {
	if err := c.call(ctx, MethodPlanRelease); err != nil {
		return nil, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if slices.Contains(r.Done, chain.StepSweep) {
		return nil, nil
	}

	asset, ok := c.network.AssetByID(r.Asset.ID)
	if !ok {
		return nil, fault.New(
			fault.Invalid, "not_releasable", "network %s has no asset with id %q",
			c.network.Slug, r.Asset.ID,
		)
	}

	held := c.balances.at(chain.Holding{Address: r.Deposit.Address, AssetID: asset.ID}, c.view())
	if asset.Kind == chain.Native {
		return c.planNative(r, held)
	}

	return c.planToken(r, asset, held)
}

func (c *Chain) planNative(r chain.Release, held chain.Amount) ([]chain.ReleaseStep, error) {
	left := r.Amount.SubFloor(r.Spent)
	if held.Less(left) {
		return nil, fundsMissing(r, held)
	}

	var steps []chain.ReleaseStep

	if !r.Fee.IsZero() && !slices.Contains(r.Done, chain.StepFee) {
		step, err := c.step(chain.StepFee, chain.Order{
			From:    r.Deposit,
			Outputs: []chain.Output{{To: r.FeeAddress, AssetID: c.native.ID, Amount: r.Fee}},
		})
		if err != nil {
			return nil, err
		}

		step.PaysFee = r.Fee
		steps = append(steps, step)
		left = left.SubFloor(r.Fee).SubFloor(step.NetworkFee)
	}

	if left.IsZero() {
		return nil, uneconomic(r)
	}

	sweep, err := c.step(chain.StepSweep, chain.Order{
		From:        r.Deposit,
		Outputs:     []chain.Output{{To: r.Master.Address, AssetID: c.native.ID, Amount: left}},
		SubtractFee: true,
	})
	if err != nil {
		return nil, err
	}

	if left.Cmp(sweep.NetworkFee) <= 0 {
		return nil, uneconomic(r)
	}

	return append(steps, sweep), nil
}

func (c *Chain) planToken(
	r chain.Release,
	asset chain.Asset,
	held chain.Amount,
) ([]chain.ReleaseStep, error) {
	if held.Less(r.Amount) {
		return nil, fundsMissing(r, held)
	}

	sweep, err := c.step(chain.StepSweep, chain.Order{
		From:    r.Deposit,
		Outputs: []chain.Output{{To: r.Master.Address, AssetID: asset.ID, Amount: r.Amount}},
	})
	if err != nil {
		return nil, err
	}

	var steps []chain.ReleaseStep

	if missing := c.missingGas(r, sweep); !missing.IsZero() {
		step, err := c.step(chain.StepTopUp, chain.Order{
			From:    r.Master,
			Outputs: []chain.Output{{To: r.Deposit.Address, AssetID: c.native.ID, Amount: missing}},
		})
		if err != nil {
			return nil, err
		}

		steps = append(steps, step)
	}

	if !r.Fee.IsZero() && !slices.Contains(r.Done, chain.StepFee) {
		step, err := c.step(chain.StepFee, chain.Order{
			From:    r.Master,
			Outputs: []chain.Output{{To: r.FeeAddress, AssetID: c.native.ID, Amount: r.Fee}},
		})
		if err != nil {
			return nil, err
		}

		step.PaysFee = r.Fee
		steps = append(steps, step)
	}

	return append(steps, sweep), nil
}

// missingGas is what the deposit address lacks for its sweep. Only the residue counts, as any other
// native coin there may be somebody's deposit. After a top-up the address holds what it was given;
// only when prices rose beyond that since is there another one.
func (c *Chain) missingGas(r chain.Release, sweep chain.ReleaseStep) chain.Amount {
	have := r.Residue
	if slices.Contains(r.Done, chain.StepTopUp) {
		native := c.balances.at(chain.Holding{Address: r.Deposit.Address, AssetID: c.native.ID}, c.view())
		if have = chain.Max(have, native); !have.Less(sweep.NetworkFee) {
			return chain.Amount{}
		}
	}

	return sweep.Order.MaxFee.SubFloor(have)
}

// step completes a step with what its transaction will cost and may cost at most.
func (c *Chain) step(kind chain.StepKind, order chain.Order) (chain.ReleaseStep, error) {
	tx, err := c.draft(order)
	if err != nil {
		return chain.ReleaseStep{}, fault.Wrap(
			err, fault.Invalid, "not_releasable", "the %s of a release from %s cannot be made",
			kind, order.From.Address,
		)
	}

	order.MaxFee = c.allowance(tx)

	price := c.baseFee + c.priority
	if order.SubtractFee {
		price += c.baseFee / 8
	}

	return chain.ReleaseStep{Kind: kind, Order: order, NetworkFee: chain.Units(price).Mul(tx.gas())}, nil
}

func fundsMissing(r chain.Release, held chain.Amount) error {
	return fault.New(
		fault.State, "funds_missing",
		"%s holds %s base units of %s, less than its deposits of %s explain after %s were spent",
		r.Deposit.Address, held, r.Asset.Symbol, r.Amount, r.Spent,
	)
}

func uneconomic(r chain.Release) error {
	return fault.New(
		fault.State, "uneconomic",
		"the deposit of %s base units at %s does not cover the fees of its release",
		r.Amount, r.Deposit.Address,
	)
}
