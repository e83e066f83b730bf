package tron

import (
	"context"
	"math/big"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Energy of a stake. Sources: java-tron, DelegateResourceActuator, UnDelegateResourceActuator,
// EnergyProcessor.calculateGlobalEnergyLimitV2.
//
// A stake has its share of the energy that all stakes of the network have together. Delegated to an active account
// that is no contract, that account has the energy. When the stake is taken back, what was used of its energy
// counts as used by its owner, and comes back within a day.

// minDelegation is the least stake that can be delegated, in sun.
const minDelegation = 1_000_000

// activationSun is what a transfer brings whose purpose is to activate an account.
const activationSun = 1

// sunPerWeight is how many sun of stake have a weight of 1.
const sunPerWeight = 1_000_000

// movableStake returns what can be delegated of the sender's stake, or what of it is delegated to the payee, in sun.
func (e *endpoint) movableStake(ctx context.Context, payment paymentParams) (chain.Amount, error) {
	if payment.stake == delegateContract {
		return e.delegatableStake(ctx, payment.from)
	}

	return e.delegatedStake(ctx, payment.from, payment.payee)
}

// delegatableStake returns what an account can delegate of its stake for energy, in sun (getcandelegatedmaxsize).
func (e *endpoint) delegatableStake(ctx context.Context, owner address) (chain.Amount, error) {
	request := struct {
		Owner string `json:"owner_address"`
		Type  int    `json:"type"`
	}{nodeHex(owner), energyResource}

	var answer struct {
		Max int64 `json:"max_size"`
	}

	if _, err := e.post(ctx, full, "getcandelegatedmaxsize", request, &answer); err != nil {
		return chain.Amount{}, err
	}

	return chain.Units(uint64(max(0, answer.Max))), nil
}

// delegatedStake returns the stake for energy that one account has delegated to another, in sun
// (getdelegatedresourcev2).
func (e *endpoint) delegatedStake(
	ctx context.Context,
	owner, receiver address,
) (sum chain.Amount, err error) {
	request := struct {
		From string `json:"fromAddress"`
		To   string `json:"toAddress"`
	}{nodeHex(owner), nodeHex(receiver)}

	var answer struct {
		Delegated []struct {
			From  string `json:"from"`
			To    string `json:"to"`
			Stake int64  `json:"frozen_balance_for_energy"`
		} `json:"delegatedResource"`
	}

	if _, err := e.post(ctx, full, "getdelegatedresourcev2", request, &answer); err != nil {
		return sum, err
	}

	for _, part := range answer.Delegated {
		if part.From != request.From || part.To != request.To || part.Stake < 0 {
			return sum, e.Garbled("getdelegatedresourcev2: a delegation of others, or a negative one")
		}

		sum = sum.Add(chain.Units(uint64(part.Stake)))
	}

	return sum, nil
}

// stakeFor returns the stake that has so much energy, rounded up to a whole TRX, in sun. Nodes calculate with
// floating point: the rounding allows for that.
func (r resources) stakeFor(energy uint64) chain.Amount {
	sun := new(big.Int).Mul(new(big.Int).SetUint64(energy), new(big.Int).SetUint64(r.totalWeight))
	sun.Mul(sun, big.NewInt(sunPerWeight))
	sun.Quo(sun, new(big.Int).SetUint64(r.totalEnergy))

	stake, err := chain.AmountFromBig(sun)
	if err != nil {
		return chain.Units(maxSun)
	}

	return stake.Add(chain.Units(1)).RoundUpTo(chain.Units(minDelegation))
}

// planEnergy returns the step that brings what a sweep lacks of energy, with a quarter more: the energy factor of a
// popular contract may rise. ok is false where the sweep lacks none, where nobody has it, and where it was tried.
func (p *sweepPlan) planEnergy(
	ctx context.Context,
	sweep feeQuote,
) (step chain.SweepStep, ok bool, err error) {
	energy, has := sweep.energy, sweep.resources.energy
	if has >= energy {
		return step, false, nil
	}

	lacks := energy + energy/4 + 1 - has
	tried := slices.Contains(p.release.Done, chain.StepDelegate)

	switch {
	case p.provider != nil && tried:
		return step, false, p.awaitPurchase(ctx)
	case p.provider != nil:
		return p.planPurchase(ctx, sweep, lacks)
	case p.delegates && !tried:
		return p.planDelegation(ctx, lacks)
	}

	return step, false, nil
}

// planDelegation returns the step that delegates stake with an amount of energy. ok is false where the master wallet's
// does not have it.
func (p *sweepPlan) planDelegation(
	ctx context.Context,
	energy uint64,
) (step chain.SweepStep, ok bool, err error) {
	master, err := parseAddress(string(p.release.Master.Address))
	if err != nil {
		return step, false, err
	}

	of, err := p.node.readResources(ctx, master)
	if err != nil || of.totalEnergy == 0 {
		return step, false, err
	}

	stake := of.stakeFor(energy)

	available, err := p.node.delegatableStake(ctx, master)
	if err != nil || available.Less(stake) {
		return step, false, err
	}

	step, quote, err := p.planStep(ctx, chain.StepDelegate, chain.Order{
		From: p.release.Master,
		Outputs: []chain.Output{
			{To: p.release.Deposit.Address, AssetID: chaindata.DelegateEnergy, Amount: stake},
		},
	})
	if err != nil {
		return step, false, err
	}

	// Taking it back costs as much again and finds the daily allowance used. Its maximum is that of this step, which
	// the price of bandwidth may double meanwhile.
	takeBack := paymentParams{stake: undelegateContract, amount: stake, permission: p.permissions[master]}
	size := bandwidthOf(takeBack.draft(0).encode())
	quote.resources.allowance -= min(size, quote.resources.allowance)
	step.NetworkFee = step.NetworkFee.Add(quote.bandwidthFee(size))
	step.Order.MaxFee = quote.maxBandwidthFee(size).Mul(2)

	return step, true, nil
}

func insufficientStake(payment paymentParams, reason string) error {
	return fault.New(
		fault.State, "insufficient_stake", "%s sun of the stake of %s cannot be moved for %s: %s",
		payment.amount, canonical(payment.from), canonical(payment.payee), reason,
	)
}
