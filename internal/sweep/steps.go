package sweep

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/settlement"
)

// planSteps returns the driver's plan for the steps of a release that are not done, checked by
// checkPlan.
func (p *planningRun) planSteps(
	ctx context.Context,
	r *settlement.Sweep,
	g group,
	coins []chain.Coin,
	asset chain.Asset,
	done []chain.StepKind,
) ([]chain.SweepStep, error) {
	residue := r.ResidueIn
	if len(done) > 0 {
		residue = r.ResidueOut
	}

	order := chain.SweepRequest{
		Coins:      coins,
		Asset:      asset,
		Deposit:    r.Deposit,
		Master:     r.Master,
		FeeAddress: r.FeeAddress,
		Amount:     r.Amount,
		Fee:        r.Fee,
		Residue:    residue,
		Spent:      g.spent().Add(r.Owed),
		Done:       done,
		KeepOpen:   hasStep(r, chain.StepSweep, wallet.Failed), // it closed, or the release would have ended
	}

	if asset.ID != p.native.ID { // Spent is of native coin
		order.Amount, order.Spent = r.Amount.SubFloor(r.Owed), g.spent()
		if order.Amount.IsZero() {
			return nil, fault.New(
				fault.State,
				"uneconomic",
				"earlier sweeps took all of what the deposits brought to %s",
				r.Deposit.Address,
			)
		}
	}

	steps, err := p.askPlan(ctx, order)
	if fault.Code(err) == "funds_missing" && !p.spendsCoins {
		err = p.proveMissing(ctx, order, err)
	}

	return steps, err
}

// checkPlan returns fault.Invalid with code not_releasable unless the plan does what was asked and
// nothing else: a faulty driver must not move money. sellers may be paid for energy.
func checkPlan( // spec 2.8.10
	r chain.SweepRequest,
	steps []chain.SweepStep,
	nativeID string,
	sellers []chain.Address,
) error {
	what := planFault(r, steps, nativeID, sellers)
	if what == "" {
		return nil
	}

	return fault.New(
		fault.Invalid, "not_releasable",
		"the driver's plan for %s of %s at %s %s; it was not carried out",
		r.Amount, r.Asset.Symbol, r.Deposit.Address, what,
	)
}

// planFault returns what is wrong with a plan as a predicate of it; empty when nothing is.
func planFault(
	r chain.SweepRequest,
	steps []chain.SweepStep,
	nativeID string,
	sellers []chain.Address,
) string {
	if len(steps) == 0 || steps[len(steps)-1].Kind != chain.StepSweep {
		return "does not end with a sweep"
	}

	if fee := paysFee(steps); !fee.IsZero() && fee != r.Fee {
		return "pays another platform fee than asked"
	}

	for i, s := range steps {
		if len(s.Order.Outputs) == 0 || s.Order.MaxFee.IsZero() ||
			(s.Kind == chain.StepSweep && i != len(steps)-1) {
			return "has a step without a payment or a maximum fee, or after the sweep"
		}

		if what := payerFault(r, s, nativeID); what != "" {
			return what
		}

		if what := outputFault(r, s, nativeID, sellers); what != "" {
			return what
		}
	}

	return ""
}

// payerFault returns what is wrong with the wallets that pay a step; empty when nothing is.
func payerFault(r chain.SweepRequest, s chain.SweepStep, nativeID string) string {
	from := r.Deposit.Address
	if s.Kind == chain.StepTopUp || s.Kind == chain.StepDelegate ||
		(s.Kind == chain.StepFee && r.Asset.ID != nativeID) {
		from = r.Master.Address
	}

	if s.Order.From.Address != from {
		return "pays its " + string(s.Kind) + " from another wallet"
	}

	payer := s.Order.FeePayer
	if payer != nil && payer.Address != r.Deposit.Address && payer.Address != r.Master.Address {
		return "has its network fees paid by another wallet"
	}

	return ""
}

// outputFault returns what is wrong with the outputs of a step; empty when nothing is.
func outputFault(r chain.SweepRequest, s chain.SweepStep, nativeID string, sellers []chain.Address) string {
	var swept, paid chain.Amount

	for _, o := range s.Order.Outputs {
		switch {
		case s.Kind == chain.StepTopUp && o.To == r.Deposit.Address && o.AssetID == nativeID:
		case s.Kind == chain.StepDelegate && o.To == r.Deposit.Address && o.AssetID == chaindata.DelegateEnergy:
		case s.Kind == chain.StepDelegate && o.AssetID == nativeID && slices.Contains(sellers, o.To):
		case s.Kind == chain.StepSweep && o.To == r.Master.Address && o.AssetID == r.Asset.ID:
			swept = swept.Add(o.Amount)
		case s.Kind != chain.StepTopUp && s.Kind != chain.StepDelegate && o.To == r.FeeAddress && o.AssetID == nativeID:
			paid = paid.Add(o.Amount)
		default:
			return "pays " + string(o.To)
		}
	}

	// Where the master wallet is the fee address, sweep and fee are one output; their sum is checked.
	if paid != s.PaysFee && r.FeeAddress != r.Master.Address {
		return "pays another platform fee than it says"
	}

	if r.Amount.Less(swept) || (s.Kind == chain.StepSweep && swept.IsZero()) {
		return "sweeps more than the deposits, or nothing"
	}

	return ""
}
