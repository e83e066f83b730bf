package bitcoin

import (
	"context"
	"slices"

	"github.com/btcsuite/btcd/txscript/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// maxReleased is how many coins a release is allowed to pay for: as many deposits as one is ever made of.
const maxReleased = 50

// PlanRelease plans the one transaction of a release: the platform fee and the rest to the master wallet as its
// outputs, the deposits as its inputs, the network fee taken out of the rest. However many deposits the
// amount is the sum of, they are moved together; other coins at the address stay.
//
// A platform fee below the dust limit cannot be paid: it is left out, PaysFee is 0, and it is for the caller
// to carry. NetworkFee is the estimate for one deposit; MaxFee allows for fifty, and never for more than
// leaves something worth sending.
func (d *Driver) PlanRelease(ctx context.Context, r chain.Release) ([]chain.ReleaseStep, error) {
	if slices.Contains(r.Done, chain.StepSweep) {
		return nil, nil
	}
	impossible := func(what string) error {
		return fault.New(fault.Invalid, "not_releasable", "the deposit at %s cannot be moved: %s", clip(string(r.Deposit.Address)), what)
	}
	if r.Asset.ID != d.native.ID {
		return nil, impossible("network " + d.network.Slug + " has no such asset")
	}
	_, deposit, err := d.parse(string(r.Deposit.Address))
	if err != nil || !spendableScript(deposit) {
		return nil, impossible("it is no P2WPKH or P2TR address of this network")
	}
	_, master, err := d.parse(string(r.Master.Address))
	if err != nil {
		return nil, impossible("the master wallet is no address of this network")
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
	step := chain.ReleaseStep{Kind: chain.StepSweep, PaysFee: units(fee), Order: chain.Order{From: r.Deposit, SubtractFee: true}}
	if fee > 0 {
		step.Order.Outputs = append(step.Order.Outputs, chain.Output{To: r.FeeAddress, AssetID: d.native.ID, Amount: units(fee)})
	}
	step.Order.Outputs = append(step.Order.Outputs, chain.Output{To: r.Master.Address, AssetID: d.native.ID, Amount: units(left)})
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
		one := candidate{taproot: txscript.IsPayToTaproot(deposit)}.weight()
		expected := p.of(n.weight(1, one, false))
		most := left - dustLimit(master)
		if most < expected {
			return uneconomic(r)
		}
		step.NetworkFee = units(expected)
		step.Order.MaxFee = units(min(most, headroom*p.of(n.weight(maxReleased, maxReleased*one, false))))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []chain.ReleaseStep{step}, nil
}

func uneconomic(r chain.Release) error {
	return fault.New(fault.State, "uneconomic", "the deposit of %s satoshi at %s does not cover the fees of its release", r.Amount, r.Deposit.Address)
}
