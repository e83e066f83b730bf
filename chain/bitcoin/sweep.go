package bitcoin

import (
	"context"
	"slices"

	"github.com/btcsuite/btcd/txscript/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// PlanSweep returns the one transaction of a release. Its inputs are the deposits' coins, which may lie at
// several addresses. Its outputs are the platform fee and, less the network fee, the remainder to the master
// wallet. Other coins at the addresses are not spent.
//
// A platform fee below the dust limit cannot be paid: the step omits it, PaysFee is 0, and the caller carries
// it over. MaxFee allows for replacements, as far as the remainder stays above the dust limit. It errors:
//   - fault.Invalid (not_releasable): an asset, address or sum of the release is wrong
//   - fault.State (uneconomic): the deposit does not cover the fees
func (d *driver) PlanSweep(ctx context.Context, release chain.SweepRequest) ([]chain.SweepStep, error) {
	if slices.Contains(release.Done, chain.StepSweep) {
		return nil, nil
	}

	plan, err := d.checkSweep(release)
	if err != nil {
		return nil, err
	}

	step := d.sweepStep(release, plan)

	target, err := d.targetOf(step.Order)
	if err != nil {
		return nil, notSweepable(release.Deposit, err.Error())
	}

	err = d.ask(ctx, func(ctx context.Context, node *endpoint) error {
		rates, err := d.readFeeRates(ctx, node)
		if err != nil {
			return err
		}

		policy := feePolicy{rate: rates.estimate}
		expected := policy.fee(target.txWeight(len(release.Coins), plan.inputWeights, false))

		spare := plan.remainder - plan.leastRemainder
		if spare < expected {
			return uneconomic(release)
		}

		step.NetworkFee = satoshiAmount(expected)
		step.Order.MaxFee = satoshiAmount(min(spare, bumpHeadroom*expected))

		return nil
	})
	if err != nil {
		return nil, err
	}

	return []chain.SweepStep{step}, nil
}

// InputFees returns the amount that spending each coin adds to a fee at the current rate, in satoshi, rounded
// up.
func (d *driver) InputFees(ctx context.Context, coins []chain.Coin) ([]chain.Amount, error) {
	var rates feeRates

	err := d.ask(ctx, func(ctx context.Context, node *endpoint) (err error) {
		rates, err = d.readFeeRates(ctx, node)
		return err
	})
	if err != nil {
		return nil, err
	}

	fees := make([]chain.Amount, len(coins))

	for i, coin := range coins {
		_, script, err := d.parse(string(coin.Owner.Address))
		if err != nil || !spendableScript(script) {
			return nil, notSweepable(coin.Owner, notSpendable)
		}

		input := candidate{taproot: txscript.IsPayToTaproot(script)}
		fees[i] = satoshiAmount(feeAt(rates.estimate, input.weight()))
	}

	return fees, nil
}

// sweepPlan holds the payments of a release, in satoshi.
type sweepPlan struct {
	// fee is the platform fee, 0 where it would be dust.
	fee int64
	// remainder goes to the master wallet and includes the network fee; leastRemainder is its dust limit.
	remainder, leastRemainder int64
	// inputWeights is the weight of all inputs in weight units.
	inputWeights int64
}

// checkSweep checks a release and returns its payments.
func (d *driver) checkSweep(release chain.SweepRequest) (sweepPlan, error) {
	if release.Asset.ID != d.native.ID {
		return sweepPlan{}, notSweepable(release.Deposit, "network "+d.network.Slug+" has no such asset")
	}

	if _, deposit, err := d.parse(string(release.Deposit.Address)); err != nil || !spendableScript(deposit) {
		return sweepPlan{}, notSweepable(release.Deposit, notSpendable)
	}

	_, master, err := d.parse(string(release.Master.Address))
	if err != nil {
		return sweepPlan{}, notSweepable(
			release.Deposit, "the master wallet is no address of this network",
		)
	}

	weights, err := d.depositWeight(release)
	if err != nil {
		return sweepPlan{}, err
	}

	total, ok := satoshi(release.Amount.SubFloor(release.Spent))
	if !ok {
		return sweepPlan{}, uneconomic(release)
	}

	fee, err := d.platformFee(release)
	if err != nil {
		return sweepPlan{}, err
	}

	plan := sweepPlan{
		fee:            fee,
		remainder:      total - fee,
		leastRemainder: dustLimit(master),
		inputWeights:   weights,
	}
	if plan.remainder < plan.leastRemainder {
		return sweepPlan{}, uneconomic(release)
	}

	return plan, nil
}

// depositWeight returns the weight of the inputs that hold the deposits, in weight units.
func (d *driver) depositWeight(release chain.SweepRequest) (weight int64, err error) {
	var sum chain.Amount

	for _, coin := range release.Coins {
		_, script, err := d.parse(string(coin.Owner.Address))
		if err != nil || !spendableScript(script) {
			return 0, notSweepable(coin.Owner, notSpendable)
		}

		weight += candidate{taproot: txscript.IsPayToTaproot(script)}.weight()
		sum = sum.Add(coin.Amount)
	}

	if sum != release.Amount {
		return 0, fault.New(
			fault.Invalid, "not_releasable",
			"the release of %s satoshi names coins of %s: they must be the same",
			release.Amount, sum,
		)
	}

	return weight, nil
}

// platformFee returns the platform fee of a release in satoshi; 0 if it would be dust.
func (d *driver) platformFee(release chain.SweepRequest) (int64, error) {
	if release.Fee.IsZero() {
		return 0, nil
	}

	_, payee, err := d.parse(string(release.FeeAddress))
	if err != nil {
		return 0, notSweepable(release.Deposit, "the platform's fee address is no address of this network")
	}

	fee, ok := satoshi(release.Fee)
	if !ok {
		return 0, uneconomic(release)
	}

	if fee < dustLimit(payee) {
		return 0, nil
	}

	return fee, nil
}

// sweepStep returns the step of a release without its network fees.
func (d *driver) sweepStep(release chain.SweepRequest, plan sweepPlan) chain.SweepStep {
	var outputs []chain.Output
	if plan.fee > 0 {
		outputs = append(outputs, d.output(release.FeeAddress, plan.fee))
	}

	return chain.SweepStep{
		Kind:    chain.StepSweep,
		PaysFee: satoshiAmount(plan.fee),
		Order: chain.Order{
			From:        release.Deposit,
			SubtractFee: true,
			Coins:       release.Coins,
			Outputs:     append(outputs, d.output(release.Master.Address, plan.remainder)),
		},
	}
}

// output returns a payment of an amount in satoshi.
func (d *driver) output(to chain.Address, amount int64) chain.Output {
	return chain.Output{To: to, AssetID: d.native.ID, Amount: satoshiAmount(amount)}
}

const notSpendable = "it is no P2WPKH or P2TR address of this network"

func notSweepable(deposit chain.Party, reason string) error {
	return fault.New(
		fault.Invalid, "not_releasable", "the deposit at %s cannot be moved: %s",
		truncate(string(deposit.Address)), reason,
	)
}

func uneconomic(release chain.SweepRequest) error {
	return fault.New(
		fault.State, "uneconomic",
		"the deposit of %s satoshi at %s does not cover the fees of its release",
		release.Amount, release.Deposit.Address,
	)
}
