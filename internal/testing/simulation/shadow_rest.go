package simulation

import (
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	places "github.com/seed-8ee7f392/payments/internal/ledger"
	"github.com/seed-8ee7f392/payments/settlement"
)

// checkRest compares, at rest, the balances that the facts of each place come to with those of the chain.
func (s *shadow) checkRest() {
	for at := range s.settlements {
		if at.address == "" || s.oracle.lost || s.oracle.hasStolen(at.network) {
			continue
		}

		rows := s.rowsOf(at)
		facts := places.FactsOf(rows)
		out := places.Fold(facts)
		held := map[string]chain.Amount{}

		live := slices.ContainsFunc(facts.Plans, func(p places.Plan) bool {
			return slices.ContainsFunc(
				p.Steps,
				func(step places.Step) bool { return step.Live && step.TxHash != "" },
			)
		})
		if live || s.marks[at]["left a release"] {
			continue
		}

		shown := map[string]places.Settlement{}
		for _, of := range out.Settlements {
			shown[of.ID] = of
		}

		for _, d := range facts.Deposits {
			of := shown[d.ID]
			if !d.Canonical || of.NetReleased != nil {
				continue
			}

			left := d.Gross
			if d.Source == settlement.FromDeposit {
				left = left.SubFloor(of.FeePaid).SubFloor(of.NetworkFees)
			}

			held[d.AssetID] = held[d.AssetID].Add(left)
		}

		n := s.network(at.network)
		for _, a := range n.assets() {
			of := out.Asset(a.ID)
			want := held[a.ID].Add(of.Free).SubFloor(of.Owed)
			got := n.balances(n.tip().Height, []chain.Holding{{Address: at.address, AssetID: a.ID}})[0]
			s.oracle.harness.account.Counts["shadow: balances compared with the chain"]++

			if want != got {
				s.differ(
					at,
					rows,
					s.marksOf(at),
					string(a.Kind)+" balance at rest",
					string(at.address),
					got,
					want,
				)
			}
		}
	}
}

// checkCarry compares, at rest, the platform fee that each account carries with what the facts of its places come to.
func (s *shadow) checkCarry() {
	type account struct {
		owner   event.Owner
		network string
	}

	sums, marks := map[account]*big.Int{}, map[account]map[string]bool{}

	for at := range s.settlements {
		byOwner := map[event.Owner]bool{}
		for _, id := range s.settlements[at] {
			byOwner[s.oracle.records.settlements[id].Owner] = true
		}

		for owner := range byOwner {
			rows := s.rowsOf(at)
			rows.Settlements = slices.DeleteFunc(
				rows.Settlements,
				func(of settlement.Settlement) bool { return of.Owner != owner },
			)
			rows.Sweeps = slices.DeleteFunc(
				rows.Sweeps,
				func(r settlement.Sweep) bool { return r.Owner != owner },
			)
			out := places.Fold(places.FactsOf(rows))

			of := account{owner, at.network}
			if sums[of] == nil {
				sums[of], marks[of] = new(big.Int), map[string]bool{}
			}

			sums[of].Add(sums[of], out.CarriedOut.Big()).Sub(sums[of], out.CarriedIn.Big())
			maps.Copy(marks[of], s.marks[at])
		}
	}

	for of, sum := range sums {
		row, _, err := s.oracle.harness.store.Carry(s.oracle.harness.ctx, of.owner, of.network)
		must(err)

		s.oracle.harness.account.Counts["shadow: carries compared"]++

		if s.oracle.lost {
			marks[of]["restored"] = true
		}

		if row.Amount.Big().Cmp(sum) != 0 {
			cause := strings.Join(slices.Sorted(maps.Keys(marks[of])), ", ")
			s.differ(
				walletOf{network: of.network},
				places.Rows{},
				cause,
				"carry at rest",
				of.owner.AccountID,
				row.Amount,
				sum,
			)
		}
	}
}
