package bitcoin

import (
	"context"
	"slices"

	"github.com/btcsuite/btcd/txscript/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// PlanRelease plans the one transaction of a release: the platform fee and the rest to the master
// wallet as its outputs, the deposits' coins as its inputs, the network fee taken out of the rest.
// The coins may lie at several addresses; others at the addresses stay.
//
// A platform fee below the dust limit cannot be paid: it is left out, PaysFee is 0, and it is for the caller
// to carry. MaxFee leaves room for replacements, and never for more than leaves something worth sending.
func (d *Driver) PlanRelease(ctx context.Context, release chain.Release) ([]chain.ReleaseStep, error) {
	if slices.Contains(release.Done, chain.StepSweep) {
		return nil, nil
	}

	impossible := func(what string) error {
		return fault.New(
			fault.Invalid, "not_releasable", "the deposit at %s cannot be moved: %s",
			truncate(string(release.Deposit.Address)), what,
		)
	}
	if release.Asset.ID != d.native.ID {
		return nil, impossible("network " + d.network.Slug + " has no such asset")
	}

	if _, deposit, err := d.parse(string(release.Deposit.Address)); err != nil || !spendableScript(deposit) {
		return nil, impossible("it is no P2WPKH or P2TR address of this network")
	}

	_, master, err := d.parse(string(release.Master.Address))
	if err != nil {
		return nil, impossible("the master wallet is no address of this network")
	}

	inputs, err := d.depositWeight(release)
	if err != nil {
		return nil, err
	}

	amount := release.Amount.SubFloor(release.Spent)

	total, ok := satoshi(amount)
	if !ok {
		return nil, uneconomic(release)
	}

	var fee int64

	if !release.Fee.IsZero() {
		_, payee, err := d.parse(string(release.FeeAddress))
		if err != nil {
			return nil, impossible("the platform's fee address is no address of this network")
		}

		if fee, ok = satoshi(release.Fee); !ok {
			return nil, uneconomic(release)
		}

		if fee < dustLimit(payee) {
			fee = 0
		}
	}

	left := total - fee
	if left < dustLimit(master) {
		return nil, uneconomic(release)
	}

	step := chain.ReleaseStep{
		Kind:    chain.StepSweep,
		PaysFee: satoshiAmount(fee),
		Order:   chain.Order{From: release.Deposit, SubtractFee: true, Coins: release.Coins},
	}
	if fee > 0 {
		step.Order.Outputs = append(
			step.Order.Outputs,
			chain.Output{To: release.FeeAddress, AssetID: d.native.ID, Amount: satoshiAmount(fee)},
		)
	}

	step.Order.Outputs = append(
		step.Order.Outputs,
		chain.Output{To: release.Master.Address, AssetID: d.native.ID, Amount: satoshiAmount(left)},
	)

	target, err := d.targetOf(step.Order)
	if err != nil {
		return nil, impossible(err.Error())
	}

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		rates, err := d.readFeeRates(ctx, e)
		if err != nil {
			return err
		}

		policy := feePolicy{rate: rates.estimate}
		expected := policy.fee(target.txWeight(len(release.Coins), inputs, false))

		most := left - dustLimit(master)
		if most < expected {
			return uneconomic(release)
		}

		step.NetworkFee = satoshiAmount(expected)
		step.Order.MaxFee = satoshiAmount(min(most, bumpHeadroom*expected))

		return nil
	})
	if err != nil {
		return nil, err
	}

	return []chain.ReleaseStep{step}, nil
}

// depositWeight returns the weight of the inputs that hold the deposits.
func (d *Driver) depositWeight(release chain.Release) (weight int64, err error) {
	var sum chain.Amount

	for _, c := range release.Coins {
		_, script, err := d.parse(string(c.Owner.Address))
		if err != nil || !spendableScript(script) {
			return 0, fault.New(
				fault.Invalid, "not_releasable",
				"the deposit at %s cannot be moved: it is no P2WPKH or P2TR address of this network",
				truncate(string(c.Owner.Address)),
			)
		}

		weight += candidate{taproot: txscript.IsPayToTaproot(script)}.weight()
		sum = sum.Add(c.Amount)
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

func uneconomic(release chain.Release) error {
	return fault.New(
		fault.State, "uneconomic",
		"the deposit of %s satoshi at %s does not cover the fees of its release",
		release.Amount, release.Deposit.Address,
	)
}
