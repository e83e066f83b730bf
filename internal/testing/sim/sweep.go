package sim

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// PlanSweep returns the remaining steps of a sweep, as on an EVM network. A native deposit pays the
// platform fee, if any, and then the sweep of the remainder. For a token deposit the master wallet
// pays: a top-up of the gas that the deposit address lacks, the platform fee, then the token sweep.
//
// In addition to the errors of chain.Sweeper, an address that holds less than its deposits is
// fault.State with code funds_missing.
func (c *Chain) PlanSweep(ctx context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
	return askFinal(
		ctx, c, MethodPlanSweep,
		func(n *node) ([]chain.SweepStep, error) { return c.planSweep(r, n.tip) },
	)
}

// planSweep returns the remaining steps of a sweep at a node's tip.
func (c *Chain) planSweep(r chain.SweepRequest, tip uint64) ([]chain.SweepStep, error) {
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

	balance := c.balances.at(chain.Holding{Address: r.Deposit.Address, AssetID: asset.ID}, tip)
	if asset.Kind == chain.Native {
		return c.planNative(r, balance)
	}

	return c.planToken(r, asset, balance, tip)
}

func (c *Chain) planNative(r chain.SweepRequest, balance chain.Amount) ([]chain.SweepStep, error) {
	remaining := r.Amount.SubFloor(r.Spent)
	if balance.Less(remaining) {
		return nil, fundsMissing(r, balance)
	}

	var steps []chain.SweepStep

	if !r.Fee.IsZero() && !slices.Contains(r.Done, chain.StepFee) {
		step, err := c.priceStep(chain.StepFee, chain.Order{
			From:    r.Deposit,
			Outputs: []chain.Output{{To: r.FeeAddress, AssetID: c.native.ID, Amount: r.Fee}},
		})
		if err != nil {
			return nil, err
		}

		step.PaysFee = r.Fee
		steps = append(steps, step)
		remaining = remaining.SubFloor(r.Fee).SubFloor(step.NetworkFee)
	}

	if remaining.IsZero() {
		return nil, uneconomic(r)
	}

	sweep, err := c.priceStep(chain.StepSweep, chain.Order{
		From:        r.Deposit,
		Outputs:     []chain.Output{{To: r.Master.Address, AssetID: c.native.ID, Amount: remaining}},
		SubtractFee: true,
	})
	if err != nil {
		return nil, err
	}

	if remaining.Cmp(sweep.NetworkFee) <= 0 {
		return nil, uneconomic(r)
	}

	return append(steps, sweep), nil
}

func (c *Chain) planToken(
	r chain.SweepRequest,
	asset chain.Asset,
	balance chain.Amount,
	tip uint64,
) ([]chain.SweepStep, error) {
	if balance.Less(r.Amount) {
		return nil, fundsMissing(r, balance)
	}

	sweep, err := c.priceStep(chain.StepSweep, chain.Order{
		From:    r.Deposit,
		Outputs: []chain.Output{{To: r.Master.Address, AssetID: asset.ID, Amount: r.Amount}},
	})
	if err != nil {
		return nil, err
	}

	var steps []chain.SweepStep

	if missing := c.missingGas(r, sweep, tip); !missing.IsZero() {
		step, err := c.priceStep(chain.StepTopUp, chain.Order{
			From:    r.Master,
			Outputs: []chain.Output{{To: r.Deposit.Address, AssetID: c.native.ID, Amount: missing}},
		})
		if err != nil {
			return nil, err
		}

		steps = append(steps, step)
	}

	if !r.Fee.IsZero() && !slices.Contains(r.Done, chain.StepFee) {
		step, err := c.priceStep(chain.StepFee, chain.Order{
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

// missingGas returns the native coin that the deposit address lacks for its sweep. Before a top-up only
// the residue counts, since other coin may be a deposit. After one, the whole balance counts.
func (c *Chain) missingGas(r chain.SweepRequest, sweep chain.SweepStep, tip uint64) chain.Amount {
	available := r.Residue
	if slices.Contains(r.Done, chain.StepTopUp) {
		native := c.balances.at(chain.Holding{Address: r.Deposit.Address, AssetID: c.native.ID}, tip)

		available = chaindata.Max(available, native)
		if !available.Less(sweep.NetworkFee) {
			return chain.Amount{}
		}
	}

	return sweep.Order.MaxFee.SubFloor(available)
}

// priceStep returns the step of an order with its network fee and maximum fee.
func (c *Chain) priceStep(kind chain.StepKind, order chain.Order) (chain.SweepStep, error) {
	tx, err := c.transactionOf(order)
	if err != nil {
		return chain.SweepStep{}, fault.Wrap(
			err, fault.Invalid, "not_releasable", "the %s of a release from %s cannot be made",
			kind, order.From.Address,
		)
	}

	order.MaxFee = c.suggestedMaxFee(tx)

	price := c.baseFee + c.priority
	if order.SubtractFee {
		price += c.baseFee / 8
	}

	return chain.SweepStep{Kind: kind, Order: order, NetworkFee: chain.Units(price).Mul(tx.gas())}, nil
}

func fundsMissing(r chain.SweepRequest, balance chain.Amount) error {
	return fault.New(
		fault.State, "funds_missing",
		"%s holds %s base units of %s, less than its deposits of %s explain after %s were spent",
		r.Deposit.Address, balance, r.Asset.Symbol, r.Amount, r.Spent,
	)
}

func uneconomic(r chain.SweepRequest) error {
	return fault.New(
		fault.State, "uneconomic",
		"the deposit of %s base units at %s does not cover the fees of its release",
		r.Amount, r.Deposit.Address,
	)
}
