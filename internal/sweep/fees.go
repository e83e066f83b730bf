package sweep

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/settlement"
)

// setNetworkFee sets what the network took for a step, in native base units.
func (w *sweepUpdate) setNetworkFee(step *settlement.Step, fee chain.Amount) {
	w.splitNetworkFees(func() { step.NetworkFee = fee })
}

// splitNetworkFees applies a change of the release's network fees and splits the new total among the
// settlements; see shares.
func (w *sweepUpdate) splitNetworkFees(change func()) {
	if len(w.group) == 0 {
		change()
		return
	}

	before := w.shares(totalNetworkFees(w.release))

	change()

	for i, share := range w.shares(totalNetworkFees(w.release)) {
		w.group[i].NetworkFees = w.group[i].NetworkFees.Add(share).SubFloor(before[i])
	}
}

// payFee marks the platform fee of a final step as paid: to each settlement its own, less the parts of
// those that left the release.
func (w *sweepUpdate) payFee(step *settlement.Step) {
	amount := unbookedFee(step)

	leaves := len(w.group) > 1 && step.Kind != chain.StepSweep
	for i := range w.group {
		part := chain.Min(amount, w.group[i].FeeCarried)
		w.group[i].Pay(part)

		amount = amount.Sub(part)
		if leaves && !part.IsZero() {
			step.Parts = append(
				slices.Clip(step.Parts), settlement.Part{SettlementID: w.group[i].ID, Amount: part},
			)
		}
	}
}

// payDetached marks a detached settlement's part of an in-flight platform fee as paid. The bytes are
// signed and pay it whether its payment comes back or not.
func payDetached(r *settlement.Sweep, lost *settlement.Settlement) {
	r.Steps = slices.Clone(r.Steps)
	for i := range r.Steps {
		step := &r.Steps[i]
		if step.Recorded || step.State == wallet.Queued || step.State == wallet.Failed {
			continue
		}

		if part := chain.Min(unbookedFee(step), lost.FeeCarried); !part.IsZero() {
			lost.Pay(part)
			step.Parts = append(slices.Clip(step.Parts), settlement.Part{SettlementID: lost.ID, Amount: part})
		}
	}
}

// unbookedFee returns the part of a step's platform fee that no settlement is named for, in native base
// units.
func unbookedFee(s *settlement.Step) chain.Amount {
	left := s.PaysFee
	for _, p := range s.Parts {
		left = left.Sub(p.Amount)
	}

	return left
}

// unpayFee takes back the platform fee of a step that is proven dead: the parts and, if it was confirmed
// before, the remainder. What released settlements paid is carried.
func (w *sweepUpdate) unpayFee(ctx context.Context, step *settlement.Step, confirmed bool) error {
	rest, parts := unbookedFee(step), step.Parts
	step.Parts = nil

	for _, p := range parts {
		if i := slices.IndexFunc(
			w.group, func(s settlement.Settlement) bool { return s.ID == p.SettlementID },
		); i >= 0 {
			w.group[i].Unpay(p.Amount)
			continue
		}

		if err := w.unpayDetached(ctx, p); err != nil {
			return err
		}
	}

	if !confirmed {
		return nil
	}

	for i := range w.group {
		part := chain.Min(rest, w.group[i].FeePaid)
		w.group[i].Unpay(part)
		rest = rest.Sub(part)
	}

	if !w.release.Done {
		return nil
	}

	return w.addCarry(ctx)
}

// unpayDetached takes back the part of a settlement that left the release.
func (w *sweepUpdate) unpayDetached(ctx context.Context, p settlement.Part) error {
	found, err := w.tx.SettlementsByID(ctx, []string{p.SettlementID})
	if err != nil || len(found) == 0 {
		return err
	}

	s := found[0]
	s.Unpay(p.Amount)

	if s.Status == settlement.Released {
		if err := returnCarryTx(ctx, w.tx, w.release, p.Amount); err != nil {
			return err
		}
	}

	return w.tx.PutSettlements(ctx, &s)
}
