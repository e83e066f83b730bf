package settlement

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/send"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/webhook/event"
)

// What a Release knows of itself.

func (r *Release) last() *Step {
	if len(r.Steps) == 0 {
		return nil
	}
	return &r.Steps[len(r.Steps)-1]
}

// running reports whether a transaction of the release may still be included.
func (r *Release) running() bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { return s.State != send.Confirmed && s.State != send.Failed })
}

// started reports whether anything of the release was ever signed.
func (r *Release) started() bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { return s.TxHash != "" })
}

func (r *Release) has(kind chain.StepKind, states ...send.State) bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool {
		return s.Kind == kind && (len(states) == 0 || slices.Contains(states, s.State))
	})
}

func (r *Release) swept() bool { return r.has(chain.StepSweep, send.Confirmed) }

func (r *Release) sweeps() bool { return r.has(chain.StepSweep) }

// paysFee reports whether a transaction that pays the platform fee was made.
func (r *Release) paysFee() bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { return !s.PaysFee.IsZero() && s.State != send.Failed })
}

// done lists the kinds of the confirmed steps.
func (r *Release) done() []chain.StepKind {
	var kinds []chain.StepKind
	for _, s := range r.Steps {
		if s.State == send.Confirmed {
			kinds = append(kinds, s.Kind)
		}
	}
	return kinds
}

// networkFees is what its transactions cost so far.
func (r *Release) networkFees() (sum chain.Amount) {
	for _, s := range r.Steps {
		sum = sum.Add(s.NetworkFee)
	}
	return sum
}

// TransactionTx moves a release and its settlements when one of its transactions moves. Transactions of others are ignored.
func (s *Service) TransactionTx(ctx context.Context, tx Tx, t send.Transaction) error {
	if t.Kind != send.TopUp && t.Kind != send.Fee && t.Kind != send.Sweep {
		return nil
	}
	r, err := tx.Release(ctx, t.ObjectID)
	if errors.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	i := slices.IndexFunc(r.Steps, func(step Step) bool { return step.TransactionID == t.ID })
	if i < 0 {
		return nil
	}
	g, err := tx.SettlementsByID(ctx, r.SettlementIDs)
	if err != nil {
		return err
	}
	w := &journey{Service: s, tx: tx, r: &r, g: g, events: map[string]event.Type{}}
	before := r.Steps[i]
	r.Steps = slices.Clone(r.Steps)
	r.Steps[i].State, r.Steps[i].TxHash = t.State, t.TxHash
	w.show(t)
	switch t.State {
	case send.Queued:
		return nil
	case send.Signed, send.Broadcast, send.Included:
		err = w.advance(ctx, before, t)
	case send.Confirmed:
		err = w.confirm(ctx, i, t)
	case send.Failed:
		err = w.fail(ctx, i, t)
	}
	if err != nil {
		return err
	}
	return w.save(ctx)
}

// journey is one move of a release: the records as they will be stored, and what will be told.
type journey struct {
	*Service
	tx     Tx
	r      *Release
	g      []Settlement
	events map[string]event.Type
}

func (w *journey) save(ctx context.Context) error {
	if err := w.tx.PutRelease(ctx, w.r); err != nil {
		return err
	}
	for i := range w.g {
		t, told := w.events[w.g[i].ID]
		if !told {
			if err := w.tx.PutSettlements(ctx, &w.g[i]); err != nil {
				return err
			}
			continue
		}
		if err := w.putTx(ctx, w.tx, &w.g[i], t); err != nil {
			return err
		}
	}
	return nil
}

// show copies a transaction's hash to where the API shows it.
func (w *journey) show(t send.Transaction) {
	for i := range w.g {
		s := &w.g[i]
		switch t.Kind {
		case send.TopUp:
			s.TopUpTx = t.TxHash
		case send.Fee:
			s.FeeTx = t.TxHash
		case send.Sweep:
			s.SweepTx = t.TxHash
			for _, step := range w.r.Steps {
				if step.TransactionID == t.ID && !step.PaysFee.IsZero() {
					s.FeeTx = t.TxHash
				}
			}
		}
	}
}

// advance follows a transaction that is signed and not final. The first one starts the settlements; a sweep that was
// confirmed and left the chain reverts them.
func (w *journey) advance(ctx context.Context, before Step, t send.Transaction) error {
	carry := w.r.CarryIn
	swept := t.Kind == send.Sweep && before.State == send.Confirmed
	for i := range w.g {
		s := &w.g[i]
		switch {
		case (s.Status == Pending || s.Status == Held) && s.ReleaseID == w.r.ID:
			if err := s.Start(carry); err != nil {
				return err
			}
			carry = chain.Amount{}
		case s.Status == Released && swept:
			if err := s.Revert(""); err != nil {
				return err
			}
			w.events[s.ID] = event.SettlementReverted
		}
	}
	if swept && w.r.Done {
		w.r.Done = false // its transactions are on their way again
		if err := w.uncarry(ctx); err != nil {
			return err
		}
	}
	return nil
}

// confirm books a final transaction. After the sweep the release is done; after any other step it is planned on.
func (w *journey) confirm(ctx context.Context, i int, t send.Transaction) error {
	step := &w.r.Steps[i]
	again := step.Booked // it was confirmed before, and left the chain in between
	w.book(step, t.Fee)
	if !again {
		if err := w.residue(ctx, step.Kind, t); err != nil {
			return err
		}
		w.payFee(step.PaysFee)
	}
	step.Booked = true
	if step.Kind != chain.StepSweep {
		w.r.DueAt = w.now()
		return nil
	}
	var arrived chain.Amount
	for _, m := range t.Transfers {
		if m.To == w.r.Master.Address && m.AssetID == w.r.AssetID {
			arrived = arrived.Add(m.Amount)
		}
	}
	if arrived.IsZero() {
		// The token reported success and moved nothing.
		return w.end(ctx, TransactionFailed)
	}
	for j, net := range w.net(arrived) {
		s := &w.g[j]
		if s.Status == Reverted && s.Reason == "" { // the sweep was taken back, and is here again
			if err := s.Return(false, true, time.Time{}); err != nil {
				return err
			}
			if err := s.Start(chain.Amount{}); err != nil {
				return err
			}
		}
		if s.Status != Releasing {
			continue // its payment is gone; should it confirm again, this sweep stands for it
		}
		if err := s.Release(net, w.now()); err != nil {
			return err
		}
		w.events[s.ID] = event.SettlementReleased
	}
	w.r.Done, w.r.DueAt = true, time.Time{}
	return w.carry(ctx)
}

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

// fail ends a release of which a transaction is proven dead, was never signed, or was reverted. A reverted one cost its
// network fee.
func (w *journey) fail(ctx context.Context, i int, t send.Transaction) error {
	step := &w.r.Steps[i]
	again := step.Booked // it was confirmed before, and left the chain for good
	w.book(step, t.Fee)
	if t.Failure == send.FailReverted {
		if err := w.residue(ctx, step.Kind, t); err != nil {
			return err
		}
	}
	if again {
		if err := w.unpayFee(ctx, step.PaysFee); err != nil {
			return err
		}
	}
	if w.r.Done {
		return nil // the release ended before; there is nothing to give up
	}
	return w.end(ctx, w.reason(t))
}

// reason maps a failure code to why a settlement fails (specification 2.8).
func (w *journey) reason(t send.Transaction) Reason {
	switch {
	case t.Failure == send.FailNotPayable:
		return NotReleasable
	case t.Failure == send.FailCanceled, t.Failure == send.FailStale, t.Failure == send.FailInsufficientFunds:
		return Replanning
	case t.Failure == send.FailConflict, t.Failure == send.FailExpired, t.Failure == send.FailReverted, strings.HasPrefix(t.Failure, send.FailSignerRefused):
		return TransactionFailed
	}
	return Unclassified
}

// end gives a release up: reservations and the carry go back, the settlements fail, or return to the queue when
// nothing was signed and nothing is wrong with them.
func (w *journey) end(ctx context.Context, reason Reason) error {
	r := w.r
	r.Done, r.DueAt = true, time.Time{}
	if err := w.unreserve(ctx); err != nil {
		return err
	}
	back := chain.Amount{}
	if !r.started() {
		back = r.CarryIn
	}
	for i := range w.g {
		s := &w.g[i]
		switch s.Status {
		case Pending, Held:
			if s.ReleaseID != r.ID {
				continue
			}
			if reason == Replanning {
				if err := s.Unassign(w.now()); err != nil {
					return err
				}
				continue
			}
		case Releasing:
			back = back.Add(s.CarryOut())
		case Reverted:
			if s.Reason == PaymentOrphaned {
				continue
			}
			if err := s.Return(false, false, w.now()); err != nil {
				return err
			}
			continue
		default:
			continue
		}
		due := time.Time{}
		if reason == Replanning {
			due = w.now()
		}
		if err := s.Fail(reason, w.now(), due); err != nil {
			return err
		}
		w.events[s.ID] = event.SettlementFailed
	}
	if back.IsZero() {
		return nil
	}
	row, err := w.tx.Carry(ctx, r.Owner, r.Network)
	if err != nil {
		return err
	}
	row.Amount = row.Amount.Add(back)
	return w.tx.PutCarry(ctx, &row)
}

// unreserve gives back what the release reserved of the master wallet and did not spend.
func (w *journey) unreserve(ctx context.Context) error {
	n, _ := w.registry.Network(w.r.Network)
	native, _ := n.Native()
	for _, object := range append(stepIDs(w.r), w.r.ID) {
		if err := w.outbox.ReleaseTx(ctx, w.tx, w.r.Network, w.r.Master.Address, native.ID, object); err != nil {
			return err
		}
	}
	return nil
}

// stepIDs are the transactions of a release that were not confirmed: what those took was booked by their inclusion.
func stepIDs(r *Release) []string {
	var ids []string
	for _, s := range r.Steps {
		if s.State != send.Confirmed {
			ids = append(ids, s.TransactionID)
		}
	}
	return ids
}
