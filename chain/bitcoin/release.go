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
func (d *Driver) PlanRelease(ctx context.Context, r chain.Release) ([]chain.ReleaseStep, error) {
	if slices.Contains(r.Done, chain.StepSweep) {
		return nil, nil
	}

	impossible := func(what string) error {
		return fault.New(
			fault.Invalid, "not_releasable", "the deposit at %s cannot be moved: %s",
			clip(string(r.Deposit.Address)), what,
		)
	}
	if r.Asset.ID != d.native.ID {
		return nil, impossible("network " + d.network.Slug + " has no such asset")
	}

	if _, deposit, err := d.parse(string(r.Deposit.Address)); err != nil || !spendableScript(deposit) {
		return nil, impossible("it is no P2WPKH or P2TR address of this network")
	}

	_, master, err := d.parse(string(r.Master.Address))
	if err != nil {
		return nil, impossible("the master wallet is no address of this network")
	}

	inputs, err := d.deposits(r)
	if err != nil {
		return nil, err
	}

	amount := r.Amount.SubFloor(r.Spent)

	total, ok := satoshi(amount)
	if !ok {
		return nil, uneconomic(r)
	}

	var fee int64

	if !r.Fee.IsZero() {
		_, payee, err := d.parse(string(r.FeeAddress))
		if err != nil {
			return nil, impossible("the platform's fee address is no address of this network")
		}

		if fee, ok = satoshi(r.Fee); !ok {
			return nil, uneconomic(r)
		}

		if fee < dustLimit(payee) {
			fee = 0
		}
	}

	left := total - fee
	if left < dustLimit(master) {
		return nil, uneconomic(r)
	}

	step := chain.ReleaseStep{
		Kind:    chain.StepSweep,
		PaysFee: units(fee),
		Order:   chain.Order{From: r.Deposit, SubtractFee: true, Coins: r.Coins},
	}
	if fee > 0 {
		step.Order.Outputs = append(
			step.Order.Outputs,
			chain.Output{To: r.FeeAddress, AssetID: d.native.ID, Amount: units(fee)},
		)
	}

	step.Order.Outputs = append(
		step.Order.Outputs,
		chain.Output{To: r.Master.Address, AssetID: d.native.ID, Amount: units(left)},
	)

	n, err := d.needOf(step.Order)
	if err != nil {
		return nil, impossible(err.Error())
	}

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		now, err := d.rates(ctx, e)
		if err != nil {
			return err
		}

		p := price{rate: now.current}
		expected := p.of(n.weight(len(r.Coins), inputs, false))

		most := left - dustLimit(master)
		if most < expected {
			return uneconomic(r)
		}

		step.NetworkFee = units(expected)
		step.Order.MaxFee = units(min(most, headroom*expected))

		return nil
	})
	if err != nil {
		return nil, err
	}

	return []chain.ReleaseStep{step}, nil
}

// deposits returns the weight of the inputs that hold the deposits.
func (d *Driver) deposits(r chain.Release) (weight int64, err error) {
	var sum chain.Amount

	for _, c := range r.Coins {
		_, script, err := d.parse(string(c.Owner.Address))
		if err != nil || !spendableScript(script) {
			return 0, fault.New(
				fault.Invalid, "not_releasable",
				"the deposit at %s cannot be moved: it is no P2WPKH or P2TR address of this network",
				clip(string(c.Owner.Address)),
			)
		}

		weight += candidate{taproot: txscript.IsPayToTaproot(script)}.weight()
		sum = sum.Add(c.Amount)
	}

	if sum != r.Amount {
		return 0, fault.New(
			fault.Invalid, "not_releasable",
			"the release of %s satoshi names coins of %s: they must be the same",
			r.Amount, sum,
		)
	}

	return weight, nil
}

func uneconomic(r chain.Release) error {
	return fault.New(
		fault.State, "uneconomic",
		"the deposit of %s satoshi at %s does not cover the fees of its release",
		r.Amount, r.Deposit.Address,
	)
}
