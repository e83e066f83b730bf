package ledger

import (
	"cmp"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
)

// This file answers questions about a Plan. Only results count that the canonical chain holds.

// steps returns the plan's steps, oldest first.
func (p Plan) steps() []Step {
	return slices.SortedFunc(slices.Values(p.Steps), func(a, b Step) int { return cmp.Compare(a.ID, b.ID) })
}

// part is the results of the steps that were made for the same members.
type part struct {
	members []string
	results []Result
}

// parts returns the results of the plan by members, those of its oldest steps first.
func (p Plan) parts() (all []part) {
	for _, step := range p.steps() {
		members := step.Members
		if members == nil {
			members = p.Members
		}

		members = slices.Sorted(slices.Values(members))

		i := slices.IndexFunc(all, func(of part) bool { return slices.Equal(of.members, members) })
		if i < 0 {
			i = len(all)
			all = append(all, part{members: members})
		}

		for _, r := range step.Results {
			if r.Canonical {
				all[i].results = append(all[i].results, r)
			}
		}
	}

	return all
}

func (p part) sum(of func(Result) chain.Amount) (sum chain.Amount) {
	for _, r := range p.results {
		sum = sum.Add(of(r))
	}

	return sum
}

func (p part) cost() chain.Amount { return p.sum(func(r Result) chain.Amount { return r.Cost }) }

func (p part) brought() chain.Amount { return p.sum(func(r Result) chain.Amount { return r.Brought }) }

func (p part) paidAtPlace() chain.Amount {
	return p.sum(func(r Result) chain.Amount {
		if !r.AtPlace {
			return chain.Amount{}
		}

		return r.Cost
	})
}

// feePaid returns the platform fee that reached the fee address, in native base units.
func (p Plan) feePaid() (sum chain.Amount) {
	for _, of := range p.parts() {
		sum = sum.Add(of.sum(func(r Result) chain.Amount { return r.FeePaid }))
	}

	return sum
}

// feeUnderWay returns the platform fee that signed transactions will pay, in native base units.
func (p Plan) feeUnderWay() (sum chain.Amount) {
	for _, step := range p.Steps {
		if step.Live && step.TxHash != "" {
			sum = sum.Add(step.PaysFee)
		}
	}

	return sum
}

// swept returns what sweeps of the plan sent and brought to the master wallet, in base units of its asset; done is
// false when they brought nothing.
func (p Plan) swept() (done bool, sent, arrived chain.Amount) {
	for _, r := range p.sweeps() {
		if r.Canonical {
			done, sent, arrived = true, sent.Add(r.Sent), arrived.Add(r.Arrived)
		}
	}

	return done, sent, arrived
}

// sweeps returns the results of the plan's sweeps that brought something, whether the canonical chain holds them or
// not, in the order in which they were learned.
func (p Plan) sweeps() (all []Result) {
	for _, step := range p.Steps {
		for _, r := range step.Results {
			if step.Kind == chain.StepSweep && !r.Arrived.IsZero() {
				all = append(all, r)
			}
		}
	}

	slices.SortFunc(all, func(a, b Result) int {
		return cmp.Or(a.LearnedAt.Compare(b.LearnedAt), cmp.Compare(a.TxHash, b.TxHash))
	})

	return all
}

// sweptBy returns the hash of the plan's sweep that the canonical chain holds, or another one without such.
func (p Plan) sweptBy(other string) string {
	for _, r := range p.sweeps() {
		if r.Canonical {
			other = r.TxHash
		}
	}

	return other
}

// sweptMembers returns the members that the plan's sweep is for.
func (p Plan) sweptMembers() []string {
	for _, step := range p.Steps {
		if step.Kind == chain.StepSweep && step.Members != nil {
			return step.Members
		}
	}

	return p.Members
}

// cameToNothing reports whether the plan is over and released nothing, and pays no fee any more.
func (p Plan) cameToNothing() bool {
	swept, _, _ := p.swept()

	return p.Over && !swept && p.feeUnderWay().IsZero()
}

// isLive reports whether a transaction of the plan is under way, or follows.
func (p Plan) isLive() bool {
	return !p.Over || slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Live })
}

// isStarted reports whether a transaction of the plan was ever signed.
func (p Plan) isStarted() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.TxHash != "" })
}

// isOf reports whether the plan moves an asset.
func (p Plan) isOf(assetID string) bool { return p.AssetID == assetID }
