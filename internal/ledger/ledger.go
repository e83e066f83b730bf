// Package ledger computes what the facts at one place come to: everything that a settlement shows, and what is free,
// owed and unclaimed at the place.
//
// A place is what a release takes from: a deposit address, or where outputs are spent the outputs that one plan joins.
// Facts are appended and never changed; a fork changes which of them the canonical chain holds. So nothing is ever
// taken back by hand: the facts of the place are folded anew.
//
//	deposits ──┐
//	plans ─────┤              ┌─► settlements: status, fees, costs, what was released
//	results ───┼─► Fold(…) ───┼─► balances of the place: free, owed, unclaimed, withheld
//	verdicts ──┤              └─► platform fee that is carried to other releases, or from them
//	withdrawals┘
//
// facts.go and outcome.go are the two ends, allocate.go is the rule of who bears and gets what (docs/settlements.md is
// the same for people), status.go the rule of what a settlement waits for. rows.go reads today's records as facts. The
// package is pure: it has no store, no clock and no node.
package ledger

import (
	"cmp"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
)

// Fold returns what facts come to. It is total, and the order of the facts in their slices changes nothing.
func Fold(f Facts) Outcome {
	w := newFold(f)

	for _, e := range w.timeline() {
		switch {
		case e.plan != nil:
			w.allocate(*e.plan)
		case e.withdrawal != nil:
			w.withdraw(*e.withdrawal)
		}
	}

	return w.outcome()
}

// fold is a fold under way.
type fold struct {
	facts Facts
	// holders are the deposits with what they show, oldest first.
	holders []*holder
	byID    map[string]*holder
	assets  map[string]*asset
	// ahead is platform fee that was paid and that no settlement owes, in native base units.
	ahead chain.Amount
	// carryIn is platform fee of other places that plans bear here, in native base units.
	carryIn chain.Amount
}

// holder is a deposit with what its settlement shows.
type holder struct {
	Deposit
	shown Settlement
	// plans have it, oldest first.
	plans []Plan
	// waiting is platform fee that a transaction under way will pay, in native base units.
	waiting chain.Amount
}

func compareHolders(a, b *holder) int { return cmp.Compare(a.ID, b.ID) }

// asset is what is at a place of one asset beside its deposits, in base units.
type asset struct {
	beyond balance
	// unclaimed reached the master wallet, and no settlement shows it; broughtBy is the newest sweep that left some.
	unclaimed chain.Amount
	broughtBy string
	// withheld was taken by transactions of which nobody has said yet what they were.
	withheld chain.Amount
}

// entry is what happened at a place: a plan, or a withdrawal that is none of a plan.
type entry struct {
	// at is the order of entries.
	at         int
	plan       *Plan
	withdrawal *Withdrawal
}

func newFold(f Facts) *fold {
	w := &fold{facts: f, byID: map[string]*holder{}, assets: map[string]*asset{}, ahead: f.Since.FeeAhead}

	for _, a := range f.Since.Assets {
		w.assets[a.ID] = &asset{balance{a.Free, a.Owed}, a.Unclaimed, a.BroughtBy, a.Withheld}
	}

	for _, d := range f.Deposits {
		h := &holder{Deposit: d, shown: Settlement{ID: d.ID, FeeCarried: d.Fee}}
		w.holders = append(w.holders, h)
		w.byID[d.ID] = h
	}

	slices.SortFunc(w.holders, compareHolders)

	return w
}

// timeline returns plans, and withdrawals after the plans that were made before them.
func (w *fold) timeline() []entry {
	var all []entry
	for i, p := range w.facts.Plans {
		all = append(all, entry{at: 2*p.Number + 1, plan: &w.facts.Plans[i]})
	}

	for i, t := range w.facts.Withdrawals {
		all = append(all, entry{at: 2 * t.Plans, withdrawal: &w.facts.Withdrawals[i]})
	}

	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.at, b.at) })

	return all
}

func (w *fold) asset(id string) *asset {
	if w.assets[id] == nil {
		w.assets[id] = &asset{}
	}

	return w.assets[id]
}

// withdraw takes what a transaction that is not on record took.
func (w *fold) withdraw(t Withdrawal) {
	if !t.Canonical {
		return
	}

	of := w.asset(t.AssetID)
	if t.Known {
		of.beyond = of.beyond.plus(chain.Amount{}, t.Amount)
	} else {
		of.withheld = of.withheld.Add(t.Amount)
	}
}

// balance is a signed sum, in base units: one of the two is 0.
type balance struct{ free, owed chain.Amount }

// plus returns the balance with in more and out less.
func (b balance) plus(in, out chain.Amount) balance {
	in, out = b.free.Add(in), b.owed.Add(out)

	return balance{in.SubFloor(out), out.SubFloor(in)}
}
