package ledger

import (
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Rows are the stored records of one place, or of all outputs of an owner.
//
// They lack some facts. Who left a release is in none of its rows, a result is gone with its block, and of verdicts
// the last is kept. FactsOf assumes what the rows say now.
type Rows struct {
	Native        string
	SpendsOutputs bool
	Settlements   []settlement.Settlement
	// Payments are those of the settlements, by id.
	Payments map[string]Payment
	// Sweeps are in the order in which they were made.
	Sweeps []settlement.Sweep
	// Transactions are those of the sweeps' steps by id, and Others the cancels and undelegations whose objects they
	// are.
	Transactions map[string]wallet.Transaction
	Others       []wallet.Transaction
	// Outgoing is what left the place and is not on record.
	Outgoing []wallet.Outgoing
}

// Payment is what the canonical chain says of a payment.
type Payment struct {
	Amount chain.Amount
	// Canonical is set while it is confirmed and has its prices.
	Canonical bool
}

// FactsOf returns the facts that stored records hold.
func FactsOf(rows Rows) Facts {
	f := Facts{Native: rows.Native, SpendsOutputs: rows.SpendsOutputs}

	for i, r := range rows.Sweeps {
		f.Plans = append(f.Plans, rows.planOf(r, i))
	}

	for _, s := range rows.Settlements {
		f.Deposits = append(f.Deposits, rows.depositOf(s, f.Plans))
	}

	for _, row := range rows.Outgoing {
		f.Withdrawals = append(f.Withdrawals, withdrawalsOf(row, rows.Native, rows.Sweeps)...)
	}

	return f
}

// lostBefore and lostAfter stand for the time when a payment was lost: rows say whether it was released by then, and
// not when its sweep was known to be final.
var (
	lostBefore = time.Unix(1, 0).UTC()
	lostAfter  = time.Unix(1<<40, 0).UTC()
)

func (rows Rows) depositOf(s settlement.Settlement, plans []Plan) Deposit {
	d := Deposit{
		ID:        s.ID,
		AssetID:   s.AssetID,
		Gross:     s.Gross,
		Fee:       s.FeeNative,
		Source:    s.FeeSource,
		Canonical: s.Reason != settlement.PaymentOrphaned,
		Verdicts:  verdictsOf(s, plans),
	}

	if p, known := rows.Payments[s.PaymentID]; known {
		d.Canonical = p.Canonical
		if p.Canonical {
			d.Gross = p.Amount
		}
	}

	if d.LostAt = lostBefore; s.Status == settlement.Reverted {
		d.LostAt = lostAfter
	}

	if s.Simulated && s.NetReleased != nil {
		d.Stored = &Stored{
			FeePaid:     s.FeePaid,
			NetReleased: *s.NetReleased,
			FeeTx:       s.FeeTx,
			SweepTx:     s.SweepTx,
			At:          s.ReleasedAt,
		}
	}

	return d
}

// verdictsOf returns the last verdict on a settlement. One that is in no release any more was said to wait.
func verdictsOf(s settlement.Settlement, plans []Plan) (all []Verdict) {
	at := s.CreatedAt

	for _, p := range plans {
		if slices.Contains(p.Members, s.ID) && p.MadeAt.After(at) {
			at = p.MadeAt
		}
	}

	switch {
	case s.FailedFor != "":
		return []Verdict{{At: s.FailedAt, Status: settlement.Failed, Reason: s.FailedFor}}
	case s.Status == settlement.Failed && s.Reason != settlement.PaymentOrphaned:
		return []Verdict{{At: s.FailedAt, Status: settlement.Failed, Reason: s.Reason}}
	case s.Status == settlement.Held:
		all = append(all, Verdict{
			At:       s.HeldSince,
			Status:   settlement.Held,
			Reason:   s.Reason,
			Required: s.RequiredNative,
		})
	}

	if s.SweepID == "" && s.Status == settlement.Pending {
		all = append(all, Verdict{At: at, Status: settlement.Pending})
	}

	return all
}

func (rows Rows) planOf(r settlement.Sweep, number int) Plan {
	p := Plan{
		ID:      r.ID,
		Number:  number,
		MadeAt:  r.CreatedAt,
		AssetID: r.AssetID,
		Members: r.SettlementIDs,
		CarryIn: r.CarryIn,
	}

	live := false

	for _, s := range rows.Settlements {
		if !slices.Contains(r.SettlementIDs, s.ID) {
			continue
		}

		if p.Bearer == "" && !s.CarriedIn.IsZero() {
			p.Bearer = s.ID
		}

		if s.SweepID == r.ID {
			gaveUp := s.Status == settlement.Failed &&
				(s.Reason != settlement.PaymentOrphaned || s.FailedFor != "")
			live = live || !gaveUp
		}

		if (s.SweepID == r.ID || s.SweepID == "") && s.RequiredNative != nil {
			p.Required = s.RequiredNative
		}
	}

	for _, step := range r.Steps {
		p.Steps = append(p.Steps, rows.stepOf(r, step))
	}

	p.Over = r.Done || !live

	return p
}

func (rows Rows) stepOf(r settlement.Sweep, step settlement.Step) Step {
	t := rows.Transactions[step.TransactionID]

	out := Step{
		ID:      step.TransactionID,
		Kind:    step.Kind,
		TxHash:  t.TxHash,
		Live:    t.State != wallet.Confirmed && t.State != wallet.Failed,
		PaysFee: step.PaysFee,
	}

	switch {
	case t.State == wallet.Confirmed:
		out.Results = append(out.Results, rows.resultOf(r, step, t))
	case t.State == wallet.Failed:
		out.Results = append(out.Results, costOf(r, t))
	case step.Kind == chain.StepSweep && rows.isReverted(r):
		out.Results = append(out.Results, Result{TxHash: t.TxHash, LearnedAt: r.CreatedAt, Arrived: r.Amount})
	}

	for _, other := range rows.Others {
		final := other.State == wallet.Confirmed || other.State == wallet.Failed
		if other.ObjectID == step.TransactionID && final {
			out.Results = append(out.Results, costOf(r, other))
		}
	}

	return out
}

// isReverted reports whether a sweep left its block that had released settlements.
func (rows Rows) isReverted(r settlement.Sweep) bool {
	return slices.ContainsFunc(rows.Settlements, func(s settlement.Settlement) bool {
		return s.SweepID == r.ID && s.Status == settlement.Reverted
	})
}

// resultOf returns what a confirmed step did.
func (rows Rows) resultOf(r settlement.Sweep, step settlement.Step, t wallet.Transaction) Result {
	out := costOf(r, t)
	out.FeePaid = step.PaysFee

	switch step.Kind {
	case chain.StepTopUp:
		out.Brought = sentTo(r.Deposit.Address, rows.Native, t.Transfers)
	case chain.StepSweep:
		out.Arrived = arrivedBy(r, t)
		out.Sent = sentTo(r.Master.Address, r.AssetID, t.Transfers)

		if r.AssetID != rows.Native { // a token may take more or less than it says
			out.Sent = orderedTo(r.Master.Address, r.AssetID, t.Order.Outputs)
		}
	case chain.StepFee, chain.StepDelegate: // their cost and fee are all
	}

	return out
}

// costOf returns what the network took for a transaction, and for energy.
func costOf(r settlement.Sweep, t wallet.Transaction) Result {
	payer := t.Order.From.Address
	if t.Order.FeePayer != nil {
		payer = t.Order.FeePayer.Address
	}

	out := Result{
		TxHash:    t.TxHash,
		Canonical: true,
		LearnedAt: t.Block.Time,
		Cost:      t.Fee,
		AtPlace:   payer == r.Deposit.Address,
	}
	if t.Kind == wallet.Delegate && t.State == wallet.Confirmed {
		out.Cost = out.Cost.Add(chaindata.EnergyPrice(t.Order))
	}

	return out
}

// arrivedBy returns what a sweep brought to the master wallet, in base units: the net of the logs. Coins that lost
// records held beside those of the release were not its own.
func arrivedBy(r settlement.Sweep, t wallet.Transaction) chain.Amount {
	var taken chain.Amount

	for _, m := range t.Transfers {
		if m.From == r.Master.Address && m.AssetID == r.AssetID && m.To != r.Master.Address {
			taken = taken.Add(m.Amount)
		}
	}

	sum := sentTo(r.Master.Address, r.AssetID, t.Transfers).SubFloor(taken)
	if walletstate.SpentCoins(t) {
		sum = chaindata.Min(sum, r.Amount.SubFloor(t.Fee))
	}

	return sum
}

// sentTo returns what transfers sent to an address, in base units of the asset.
func sentTo(to chain.Address, assetID string, transfers []chain.Transfer) (sum chain.Amount) {
	for _, m := range transfers {
		if m.To == to && m.AssetID == assetID {
			sum = sum.Add(m.Amount)
		}
	}

	return sum
}

// orderedTo returns what outputs send to an address, in base units of the asset.
func orderedTo(to chain.Address, assetID string, outputs []chain.Output) (sum chain.Amount) {
	for _, o := range outputs {
		if o.To == to && o.AssetID == assetID {
			sum = sum.Add(o.Amount)
		}
	}

	return sum
}

// withdrawalsOf returns what a transaction that is not on record took from the place. One that fulfilled something is
// on record by it, and a coin that is gone is missing in its own release.
func withdrawalsOf(row wallet.Outgoing, native string, sweeps []settlement.Sweep) (all []Withdrawal) {
	known := walletstate.IsForeign(row)
	if !known && !walletstate.IsOpen(row) || row.Outpoint != (chain.Outpoint{}) {
		return nil
	}

	plans := slices.IndexFunc(
		sweeps,
		func(r settlement.Sweep) bool { return r.CreatedAt.After(row.Block.Time) },
	)
	if plans < 0 {
		plans = len(sweeps)
	}

	add := func(assetID string, amount chain.Amount) {
		if !amount.IsZero() {
			all = append(all, Withdrawal{
				TxHash:    row.TxHash,
				Plans:     plans,
				AssetID:   assetID,
				Amount:    amount,
				Canonical: true,
				Known:     known,
			})
		}
	}

	add(native, row.Fee)

	if row.Failed {
		return all
	}

	for _, m := range row.Transfers {
		if m.From == row.Address {
			add(m.AssetID, m.Amount)
		}
	}

	return all
}
