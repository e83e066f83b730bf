package settlement

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/send"
)

// The books of a release: who bears which network fee, what arrived, what stays behind, and the platform fee paid or carried.
// Everything sums to the base unit.

// net divides what arrived among the settlements: to each its deposit less what it paid itself, the
// difference (residue, token fees) taken from the oldest that has it; where that does not work out, by gross.
func (w *journey) net(arrived chain.Amount) []chain.Amount {
	gross := make([]chain.Amount, len(w.g))
	net := make([]chain.Amount, len(w.g))
	var sum chain.Amount
	for i, s := range w.g {
		gross[i], net[i] = s.Gross, s.Gross
		if s.FeeSource == FromDeposit {
			own := s.FeePaid.Add(s.NetworkFees)
			if s.Gross.Less(own) {
				return Split(arrived, allGross(w.g))
			}
			net[i] = s.Gross.Sub(own)
		}
		sum = sum.Add(net[i])
	}
	if sum.Less(arrived) {
		return Split(arrived, allGross(w.g))
	}
	short := sum.Sub(arrived)
	for i := range net {
		take := chain.Min(short, net[i])
		net[i], short = net[i].Sub(take), short.Sub(take)
	}
	return net
}

func allGross(g []Settlement) []chain.Amount {
	out := make([]chain.Amount, len(g))
	for i, s := range g {
		out[i] = s.Gross
	}
	return out
}

// book divides what the release's transactions cost among the settlements by gross, the remainder to the oldest,
// given that a step has cost fee.
func (w *journey) book(step *Step, fee chain.Amount) {
	if len(w.g) == 0 {
		step.NetworkFee = fee
		return
	}
	before := Split(w.r.networkFees(), allGross(w.g))
	step.NetworkFee = fee
	for i, share := range Split(w.r.networkFees(), allGross(w.g)) {
		w.g[i].NetworkFees = w.g[i].NetworkFees.Add(share).SubFloor(before[i])
	}
}

// residue keeps the native coin at the deposit address that no deposit explains.
func (w *journey) residue(ctx context.Context, kind chain.StepKind, t send.Transaction) error {
	n, _ := w.registry.Network(w.r.Network)
	native, _ := n.Native()
	row, err := w.tx.Residue(ctx, w.r.Network, w.r.Deposit.Address)
	if err != nil {
		return err
	}
	old := row.Amount
	switch {
	case kind == chain.StepTopUp:
		for _, m := range t.Transfers {
			if m.To == w.r.Deposit.Address && m.AssetID == native.ID {
				row.Amount = row.Amount.Add(m.Amount)
			}
		}
	case w.r.AssetID == native.ID && kind == chain.StepSweep && t.State == send.Confirmed:
		// What the deposits held, less what they paid and what arrived, stays behind.
		taken := t.Fee
		for _, m := range t.Transfers {
			if m.AssetID == native.ID && (m.To == w.r.Master.Address || m.To == w.r.FeeAddress) {
				taken = taken.Add(m.Amount)
			}
		}
		row.Amount = row.Amount.Add(w.left().SubFloor(taken))
	case w.r.AssetID != native.ID && paysNetworkFee(t, w.r.Deposit.Address):
		row.Amount = row.Amount.SubFloor(t.Fee)
	}
	w.r.ResidueOut = row.Amount
	if row.Amount == old {
		return nil
	}
	return w.tx.PutResidue(ctx, &row)
}

// left is what earlier transactions left of native deposits; the sweep at hand is booked already.
func (w *journey) left() chain.Amount {
	left := w.r.Amount
	for _, s := range w.g {
		left = left.SubFloor(s.FeePaid).SubFloor(s.NetworkFees)
	}
	if last := w.r.last(); last != nil && last.Kind == chain.StepSweep {
		left = left.Add(last.NetworkFee)
	}
	return left
}

func paysNetworkFee(t send.Transaction, address chain.Address) bool {
	if t.Order.FeePayer != nil {
		return t.Order.FeePayer.Address == address
	}
	return t.Order.From.Address == address
}

// payFee books a platform fee that is paid: each settlement's is, what is left of the sum (nothing, unless settlements left
// the release meanwhile) is the oldest's.
func (w *journey) payFee(amount chain.Amount) {
	for i := range w.g {
		part := chain.Min(amount, w.g[i].FeeCarried)
		w.g[i].Pay(part)
		amount = amount.Sub(part)
	}
}

// unpayFee takes back a platform fee whose transaction is proven dead after it was confirmed. Of settlements that
// are released already it is carried.
func (w *journey) unpayFee(ctx context.Context, amount chain.Amount) error {
	for i := range w.g {
		part := chain.Min(amount, w.g[i].FeePaid)
		w.g[i].Unpay(part)
		amount = amount.Sub(part)
	}
	if !w.r.Done {
		return nil
	}
	return w.carry(ctx)
}

// carry adds what the release did not pay to the fee that waits for a later one.
func (w *journey) carry(ctx context.Context) error {
	return w.moveCarry(ctx, func(c chain.Amount) chain.Amount { return c.Add(group(w.g).fee()) })
}

// uncarry takes that back. What a later release has paid of it by now counts as paid.
func (w *journey) uncarry(ctx context.Context) error {
	return w.moveCarry(ctx, func(c chain.Amount) chain.Amount {
		for i := range w.g {
			back := chain.Min(c, w.g[i].FeeCarried)
			c = c.Sub(back)
			w.g[i].Pay(w.g[i].FeeCarried.Sub(back))
		}
		return c
	})
}

func (w *journey) moveCarry(ctx context.Context, f func(chain.Amount) chain.Amount) error {
	if group(w.g).fee().IsZero() {
		return nil
	}
	row, err := w.tx.Carry(ctx, w.r.Owner, w.r.Network)
	if err != nil {
		return err
	}
	amount := f(row.Amount)
	if amount == row.Amount {
		return nil
	}
	row.Amount = amount
	return w.tx.PutCarry(ctx, &row)
}
