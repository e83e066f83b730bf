package sim

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// PlanSweep returns the one transaction of a release: its inputs are the deposits' coins, its outputs the
// platform fee and, less the network fee, the remainder to the master wallet. A platform fee that would
// be dust is left out, and PaysFee is 0. It errors:
//   - fault.Invalid (not_releasable): an asset, address or sum of the release is wrong
//   - fault.State (uneconomic): the deposit does not cover the fees
func (u *UTXO) PlanSweep(ctx context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
	if err := u.call(ctx, MethodPlanSweep); err != nil {
		return nil, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	if slices.Contains(r.Done, chain.StepSweep) {
		return nil, nil
	}

	if err := u.checkSweep(r); err != nil {
		return nil, err
	}

	total, ok := unitsOf(r.Amount.SubFloor(r.Spent))
	fee, feeOK := unitsOf(r.Fee)

	if fee < u.config.DustLimit {
		fee = 0
	}

	if !ok || !feeOK || total < fee+u.config.DustLimit {
		return nil, uneconomic(r)
	}

	var outputs []chain.Output
	if fee > 0 {
		outputs = append(
			outputs,
			chain.Output{To: r.FeeAddress, AssetID: u.native.ID, Amount: chain.Units(fee)},
		)
	}

	remainder := total - fee
	outputs = append(
		outputs,
		chain.Output{To: r.Master.Address, AssetID: u.native.ID, Amount: chain.Units(remainder)},
	)

	expected := feeAt(u.rate(), vsizeOf(utxoWeight(len(r.Coins), len(outputs))))

	spare := remainder - u.config.DustLimit
	if spare < expected {
		return nil, uneconomic(r)
	}

	return []chain.SweepStep{{
		Kind:       chain.StepSweep,
		NetworkFee: chain.Units(expected),
		PaysFee:    chain.Units(fee),
		Order: chain.Order{
			From:        r.Deposit,
			SubtractFee: true,
			Coins:       r.Coins,
			Outputs:     outputs,
			MaxFee:      chain.Units(min(spare, feeHeadroom*expected)),
		},
	}}, nil
}

// InputFees returns what spending each coin adds to a fee at the current rate, in base units. A coin at no
// address is fault.Invalid.
func (u *UTXO) InputFees(ctx context.Context, coins []chain.Coin) ([]chain.Amount, error) {
	if err := u.call(ctx, MethodEstimateFee); err != nil {
		return nil, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	fees := make([]chain.Amount, len(coins))
	for i, coin := range coins {
		if _, err := parseAccount(string(coin.Owner.Address)); err != nil {
			return nil, fault.Wrap(
				err, fault.Invalid, "not_releasable", "coin %d of %d cannot be spent", i, len(coins),
			)
		}

		fees[i] = chain.Units(feeAt(u.rate(), vsizeOf(utxoWeight(1, 0)-utxoWeight(0, 0))))
	}

	return fees, nil
}

// checkSweep returns fault.Invalid (not_releasable) when an asset, address or sum of a release is wrong.
func (u *UTXO) checkSweep(r chain.SweepRequest) error {
	refuse := func(why string) error {
		return fault.New(
			fault.Invalid, "not_releasable", "the deposit at %s cannot be moved: %s", r.Deposit.Address, why,
		)
	}

	if r.Asset.ID != u.native.ID {
		return refuse("network " + u.network.Slug + " has no such asset")
	}

	addresses := []chain.Address{r.Deposit.Address, r.Master.Address}
	if !r.Fee.IsZero() {
		addresses = append(addresses, r.FeeAddress)
	}

	for _, address := range addresses {
		if _, err := parseAccount(string(address)); err != nil {
			return refuse(err.Error())
		}
	}

	var sum chain.Amount
	for _, coin := range r.Coins {
		sum = sum.Add(coin.Amount)
	}

	if sum != r.Amount {
		return refuse("its coins come to " + sum.String() + " base units, not " + r.Amount.String())
	}

	return nil
}
