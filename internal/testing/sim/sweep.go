package sim

import (
	"context"
	"errors"
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
		func(n *node) ([]chain.SweepStep, error) { return n.planSweep(r) },
	)
}

// planSweep returns the remaining steps of a sweep at the node's tip.
func (n *node) planSweep(r chain.SweepRequest) ([]chain.SweepStep, error) {
	c := n.c

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

	balance := c.balances.at(chain.Holding{Address: r.Deposit.Address, AssetID: asset.ID}, n.tip)
	if asset.Kind == chain.Native {
		return n.planNative(r, balance)
	}

	return n.planToken(r, asset, balance)
}

func (n *node) planNative(r chain.SweepRequest, balance chain.Amount) ([]chain.SweepStep, error) {
	remaining := r.Amount.SubFloor(r.Spent)
	if balance.Less(remaining) {
		return nil, fundsMissing(r, balance)
	}

	var steps []chain.SweepStep

	if !r.Fee.IsZero() && !slices.Contains(r.Done, chain.StepFee) {
		step, err := n.priceStep(chain.StepFee, chain.Order{
			From:    r.Deposit,
			Outputs: []chain.Output{{To: r.FeeAddress, AssetID: n.c.native.ID, Amount: r.Fee}},
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

	sweep, err := n.priceStep(chain.StepSweep, chain.Order{
		From:        r.Deposit,
		Outputs:     []chain.Output{{To: r.Master.Address, AssetID: n.c.native.ID, Amount: remaining}},
		SubtractFee: true,
	})
	if err != nil {
		return nil, err
	}

	if remaining.Cmp(sweep.NetworkFee) <= 0 {
		return nil, uneconomic(r)
	}

	// It pays at most half of what it moves, or what it costs now where that is more and still economic.
	half := chaindata.Max(remaining.Share(chain.Units(1), chain.Units(2)), sweep.NetworkFee)
	sweep.Order.MaxFee = chaindata.Min(sweep.Order.MaxFee, half)

	return append(steps, sweep), nil
}

func (n *node) planToken(
	r chain.SweepRequest,
	asset chain.Asset,
	balance chain.Amount,
) ([]chain.SweepStep, error) {
	if balance.Less(r.Amount) {
		return nil, fundsMissing(r, balance)
	}

	sweep, err := n.priceStep(chain.StepSweep, chain.Order{
		From:    r.Deposit,
		Outputs: []chain.Output{{To: r.Master.Address, AssetID: asset.ID, Amount: r.Amount}},
	})
	if err != nil {
		return nil, err
	}

	var steps []chain.SweepStep

	missing, available := n.missingGas(r, sweep)
	if missing.IsZero() {
		sweep.Order.MaxFee = chaindata.Min(sweep.Order.MaxFee, available)
	} else {
		step, err := n.priceStep(chain.StepTopUp, chain.Order{
			From:    r.Master,
			Outputs: []chain.Output{{To: r.Deposit.Address, AssetID: n.c.native.ID, Amount: missing}},
		})
		if err != nil {
			return nil, err
		}

		steps = append(steps, step)
	}

	if !r.Fee.IsZero() && !slices.Contains(r.Done, chain.StepFee) {
		step, err := n.priceStep(chain.StepFee, chain.Order{
			From:    r.Master,
			Outputs: []chain.Output{{To: r.FeeAddress, AssetID: n.c.native.ID, Amount: r.Fee}},
		})
		if err != nil {
			return nil, err
		}

		step.PaysFee = r.Fee
		steps = append(steps, step)
	}

	return append(steps, sweep), nil
}

// missingGas returns the native coin that the deposit address lacks for its sweep, and what it has for it. Before a
// top-up only the residue counts, since other coin may be a deposit. After one, the whole balance counts.
func (n *node) missingGas(r chain.SweepRequest, sweep chain.SweepStep) (missing, available chain.Amount) {
	available = r.Residue
	if slices.Contains(r.Done, chain.StepTopUp) {
		native := n.c.balances.at(chain.Holding{Address: r.Deposit.Address, AssetID: n.c.native.ID}, n.tip)

		available = chaindata.Max(available, native)
		if !available.Less(sweep.NetworkFee) {
			return chain.Amount{}, available
		}
	}

	return sweep.Order.MaxFee.SubFloor(available), available
}

// priceStep returns the step of an order with its network fee and maximum fee.
func (n *node) priceStep(kind chain.StepKind, order chain.Order) (chain.SweepStep, error) {
	tx, err := n.transactionOf(order)
	if errors.Is(err, fault.Unavailable) {
		return chain.SweepStep{}, err
	}

	if err != nil {
		return chain.SweepStep{}, fault.Wrap(
			err, fault.Invalid, "not_releasable", "the %s of a release from %s cannot be made",
			kind, order.From.Address,
		)
	}

	order.MaxFee = n.suggestedMaxFee(tx)

	now := n.prices()

	price := now.baseFee + now.priority
	if order.SubtractFee {
		price = now.exact()
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
