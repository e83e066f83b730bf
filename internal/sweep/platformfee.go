package sweep

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A platform fee is paid while a final block holds its transaction. Who bears how much of it is kept in the step's
// parts while the transaction is under way once more, and where a settlement leaves the release before it is paid.

// payFee marks the platform fee of a final step as paid: its parts by those that they name, the rest to each
// settlement its own.
func (w *sweepUpdate) payFee(ctx context.Context, step *settlement.Step) error {
	rest, named := unnamedFee(step), step.Parts
	step.Parts = nil

	waiting, err := feesWaiting(ctx, w.tx, w.release, w.group...) // by other transactions
	if err != nil {
		return err
	}

	for _, p := range named {
		paid, err := w.payPart(ctx, p)
		if err != nil {
			return err
		}

		step.Parts = addPart(step.Parts, p.SettlementID, paid)
		rest = rest.Add(p.Amount.Sub(paid))
	}

	leaves := len(named) > 0 || len(w.group) > 1 && step.Kind != chain.StepSweep
	pay := func(s *settlement.Settlement, due chain.Amount) {
		part := chaindata.Min(rest, due)
		settlementstate.Pay(s, part)

		rest = rest.Sub(part)
		if leaves {
			step.Parts = addPart(step.Parts, s.ID, part)
		}
	}

	for i := range w.group {
		s := &w.group[i]
		pay(s, settlementstate.DueFee(*s).SubFloor(waiting[s.ID]))
	}

	for i := range w.group { // more than was due but for what waits
		pay(&w.group[i], settlementstate.DueFee(w.group[i]))
	}

	return nil
}

// payPart has a settlement pay its part of a platform fee, at most what it has not paid, in native base units.
func (w *sweepUpdate) payPart(ctx context.Context, p settlement.Part) (paid chain.Amount, err error) {
	err = w.withSettlement(ctx, p.SettlementID, func(s *settlement.Settlement) error {
		paid = chaindata.Min(p.Amount, s.FeeCarried)
		settlementstate.Pay(s, paid)

		return nil
	})

	return paid, err
}

// unpayFee takes the platform fee of a step back whose block left the chain. Its parts keep who bears it.
func (w *sweepUpdate) unpayFee(ctx context.Context, step *settlement.Step) error {
	rest := unnamedFee(step)

	for _, p := range step.Parts {
		err := w.withSettlement(ctx, p.SettlementID, func(s *settlement.Settlement) error {
			settlementstate.Unpay(s, chaindata.Min(p.Amount, s.FeePaid))
			return nil
		})
		if err != nil {
			return err
		}
	}

	for i := range w.group {
		part := chaindata.Min(rest, w.group[i].FeePaid)
		settlementstate.Unpay(&w.group[i], part)
		rest = rest.Sub(part)
		step.Parts = addPart(step.Parts, w.group[i].ID, part)
	}

	return nil
}

// dropFee ends what a step that is proven dead was to pay. What it was to pay of released settlements is carried, and
// what failed ones had taken over of earlier ones goes back.
func (w *sweepUpdate) dropFee(ctx context.Context, step *settlement.Step) error {
	named := step.Parts
	step.Parts = nil

	for _, p := range named {
		err := w.withSettlement(ctx, p.SettlementID, func(s *settlement.Settlement) error {
			var back chain.Amount

			switch s.Status {
			case settlement.Released:
				back = chaindata.Min(p.Amount, settlementstate.DueFee(*s))
				settlementstate.CarryOut(s, back)
			case settlement.Failed:
				waiting, err := feeWaiting(ctx, w.tx, w.release, *s)
				if err != nil {
					return err
				}

				back = settlementstate.GiveBack(s, waiting)
			default:
				return nil
			}

			return returnCarryTx(ctx, w.tx, w.release, back)
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// withSettlement has f change a settlement of the release, or one that left it.
func (w *sweepUpdate) withSettlement(
	ctx context.Context,
	id string,
	f func(s *settlement.Settlement) error,
) error {
	if i := slices.IndexFunc(w.group, func(s settlement.Settlement) bool { return s.ID == id }); i >= 0 {
		return f(&w.group[i])
	}

	found, err := w.tx.SettlementsByID(ctx, []string{id})
	if err != nil || len(found) == 0 {
		return err
	}

	s := &found[0]
	before := group{*s}.spent()

	if err := f(s); err != nil {
		return err
	}

	if err := w.passOn(ctx, *s, before, group{*s}.spent()); err != nil {
		return err
	}

	return w.tx.PutSettlements(ctx, s)
}

// giveBack has a settlement that leaves its release give back what it took over of earlier ones, but for its part of a
// platform fee that is under way; in native base units.
func giveBack(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	leaves *settlement.Settlement,
) (chain.Amount, error) {
	waiting, err := feeWaiting(ctx, tx, r, *leaves)
	if err != nil {
		return chain.Amount{}, err
	}

	waiting = waiting.Add(reserveDetached(r, leaves.ID, settlementstate.DueFee(*leaves).SubFloor(waiting)))

	if leaves.CarriedIn.IsZero() {
		return chain.Amount{}, nil
	}

	return settlementstate.GiveBack(leaves, waiting), nil
}

// reserveDetached names a settlement that leaves its release for its part of a platform fee that is under way: the
// bytes are signed and pay it whether its payment comes back or not. due is what nothing under way is named to pay; it
// returns how much of that is named now, in native base units.
func reserveDetached(r *settlement.Sweep, id string, due chain.Amount) (named chain.Amount) {
	r.Steps = slices.Clone(r.Steps)

	for i := range r.Steps {
		step := &r.Steps[i]
		if !feeWaits(step) {
			continue
		}

		part := chaindata.Min(unnamedFee(step), due.Sub(named))
		step.Parts = addPart(step.Parts, id, part)
		named = named.Add(part)
	}

	return named
}

// feeWaiting returns what transactions under way will pay of a settlement's platform fee, in native base units: those
// of r, as it is changed here, and of other releases at its address, where a fork took back what they had paid.
func feeWaiting(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	of settlement.Settlement,
) (chain.Amount, error) {
	waiting, err := feesWaiting(ctx, tx, r, of)

	return waiting[of.ID], err
}

// feesWaiting returns feeWaiting of settlements of one network, by id, with one query.
func feesWaiting(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	of ...settlement.Settlement,
) (map[string]chain.Amount, error) {
	waiting := make(map[string]chain.Amount, len(of))
	if len(of) == 0 {
		return waiting, nil
	}

	var addresses []chain.Address

	for _, s := range of {
		if !slices.Contains(addresses, s.Deposit.Address) {
			addresses = append(addresses, s.Deposit.Address)
		}
	}

	all, err := tx.SweepsAt(ctx, of[0].Network, addresses)
	if err != nil {
		return nil, err
	}

	if r != nil {
		all = slices.DeleteFunc(all, func(other settlement.Sweep) bool { return other.ID == r.ID })
		all = append(all, *r)
	}

	for i := range all {
		for j := range all[i].Steps {
			step := &all[i].Steps[j]
			if !feeWaits(step) {
				continue
			}

			for _, p := range step.Parts {
				waiting[p.SettlementID] = waiting[p.SettlementID].Add(p.Amount)
			}
		}
	}

	return waiting, nil
}

// hasFeeWaiting reports whether a release has a platform fee under way that no final block holds.
func hasFeeWaiting(r *settlement.Sweep) bool {
	return slices.ContainsFunc(r.Steps, func(step settlement.Step) bool { return feeWaits(&step) })
}

// feeWaits reports whether a step has a platform fee under way that no final block holds.
func feeWaits(step *settlement.Step) bool {
	return !step.PaysFee.IsZero() && !step.Recorded &&
		step.State != wallet.Queued && step.State != wallet.Failed
}

// ownFee returns the part of a step's platform fee that is not borne by settlements which left the release, in native
// base units: they bear theirs out of what is released of them.
func (w *sweepUpdate) ownFee(step *settlement.Step) chain.Amount {
	own, ids := step.PaysFee, w.group.ids()

	for _, p := range step.Parts {
		if !slices.Contains(ids, p.SettlementID) {
			own = own.SubFloor(p.Amount)
		}
	}

	return own
}

// unnamedFee returns the part of a step's platform fee that no settlement is named for, in native base units.
func unnamedFee(step *settlement.Step) chain.Amount {
	left := step.PaysFee
	for _, p := range step.Parts {
		left = left.SubFloor(p.Amount)
	}

	return left
}

// addPart names a settlement for an amount more, in native base units.
func addPart(parts []settlement.Part, settlementID string, amount chain.Amount) []settlement.Part {
	if amount.IsZero() {
		return parts
	}

	return append(slices.Clip(parts), settlement.Part{SettlementID: settlementID, Amount: amount})
}
