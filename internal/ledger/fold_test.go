package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// history is facts in the order in which they were learned, and what they come to. A platform fee is 10.
type history struct {
	name  string
	facts []fact
	// want are settlements by id: status, and what is not 0 of paid, carried, costs and net.
	want map[string]string
	// place is what is not 0 of the place: coin and token free, owed, unclaimed, withheld, and the fee ahead.
	place string
	// carry is what the place gives to other releases, less what it takes: out and in.
	carry string
}

// fact changes facts.
type fact func(*Facts)

func factsOf(all []fact) Facts {
	f := Facts{Native: coinID}
	for _, learn := range all {
		learn(&f)
	}

	return f
}

// coin is a payment of native coin, and token one of a token.
func coin(id string, gross uint64) fact {
	return func(f *Facts) {
		f.Deposits = append(f.Deposits, Deposit{
			ID:        id,
			AssetID:   coinID,
			Gross:     chain.Units(gross),
			Fee:       chain.Units(10),
			Source:    settlement.FromDeposit,
			Canonical: true,
		})
	}
}

func token(id string, gross uint64) fact {
	return func(f *Facts) {
		coin(id, gross)(f)

		d := &f.Deposits[len(f.Deposits)-1]
		d.AssetID, d.Source = tokenID, settlement.FromMaster
	}
}

// gone is a fork that takes a payment, back one that brings it back.
func gone(id string, at int) fact {
	return changeDeposit(id, func(d *Deposit) { d.Canonical, d.LostAt = false, minute(at) })
}

func back(id string, gross uint64) fact {
	return changeDeposit(id, func(d *Deposit) { d.Canonical, d.Gross = true, chain.Units(gross) })
}

// said is a verdict on a settlement.
func said(id string, at int, status settlement.Status, reason settlement.Reason) fact {
	return changeDeposit(id, func(d *Deposit) {
		d.Verdicts = append(d.Verdicts, Verdict{At: minute(at), Status: status, Reason: reason})
	})
}

func changeDeposit(id string, change func(*Deposit)) fact {
	return func(f *Facts) {
		for i := range f.Deposits {
			if f.Deposits[i].ID == id {
				change(&f.Deposits[i])
			}
		}
	}
}

// planned is a plan for members that are separated by spaces.
func planned(plan, members string) fact {
	return func(f *Facts) {
		p := Plan{
			ID:      plan,
			Number:  len(f.Plans),
			MadeAt:  minute(10 * (len(f.Plans) + 1)),
			Members: strings.Fields(members),
		}
		for _, d := range f.Deposits {
			if d.ID == p.Members[0] {
				p.AssetID = d.AssetID
			}
		}

		f.Plans = append(f.Plans, p)
	}
}

// carrying has a plan take platform fee of others along, which a member bears.
func carrying(plan string, carry uint64, bearer string) fact {
	return changePlan(plan, func(p *Plan) { p.CarryIn, p.Bearer = chain.Units(carry), bearer })
}

func over(plan string) fact { return changePlan(plan, func(p *Plan) { p.Over = true }) }

// signed is a transaction of a plan that is under way, and pays a fee.
func signed(plan string, kind chain.StepKind, paysFee uint64) fact {
	return changePlan(plan, func(p *Plan) {
		id := fmt.Sprintf("%s/%d", plan, len(p.Steps))
		p.Steps = append(
			p.Steps,
			Step{ID: id, Kind: kind, TxHash: id, Live: true, PaysFee: chain.Units(paysFee)},
		)
	})
}

// onlyFor has the latest transaction of a plan be for some of its members.
func onlyFor(plan, members string) fact {
	return changePlan(plan, func(p *Plan) { p.Steps[len(p.Steps)-1].Members = strings.Fields(members) })
}

// final is that the latest transaction of a plan is final, with what it did.
func final(plan string, r Result) fact {
	return changePlan(plan, func(p *Plan) {
		step := &p.Steps[len(p.Steps)-1]
		step.Live = false
		r.TxHash, r.Canonical, r.LearnedAt = step.TxHash, true, p.MadeAt.Add(time.Minute)
		r.FeePaid = step.PaysFee
		r.AtPlace = p.AssetID == coinID || step.Kind == chain.StepSweep
		step.Results = append(step.Results, r)
	})
}

// leftBlock is that the block of a step left the chain, and returned that it is back, at another cost.
func leftBlock(plan string, step int) fact {
	return changePlan(plan, func(p *Plan) {
		p.Steps[step].Live, p.Steps[step].Results[0].Canonical = true, false
	})
}

func returned(plan string, step int, cost uint64) fact {
	return changePlan(plan, func(p *Plan) {
		p.Steps[step].Live = false
		p.Steps[step].Results[0].Canonical, p.Steps[step].Results[0].Cost = true, chain.Units(cost)
	})
}

// failed is that the latest transaction of a plan failed, and cost something.
func failed(plan string, cost uint64) fact {
	return changePlan(plan, func(p *Plan) {
		step := &p.Steps[len(p.Steps)-1]
		step.Live = false
		step.Results = append(
			step.Results,
			Result{Canonical: true, Cost: chain.Units(cost), AtPlace: p.AssetID == coinID},
		)
	})
}

func changePlan(plan string, change func(*Plan)) fact {
	return func(f *Facts) {
		for i := range f.Plans {
			if f.Plans[i].ID == plan {
				change(&f.Plans[i])
			}
		}
	}
}

// stolen is a transaction that is not on record; known says that a person has said so.
func stolen(assetID string, amount uint64, known bool) fact {
	return func(f *Facts) {
		f.Withdrawals = append(f.Withdrawals, Withdrawal{
			TxHash:    "foreign",
			Plans:     len(f.Plans),
			AssetID:   assetID,
			Amount:    chain.Units(amount),
			Canonical: true,
			Known:     known,
		})
	}
}

func outputs(f *Facts) { f.SpendsOutputs = true }

// swept is a whole release of native coin: a fee transaction and a sweep, each at a cost.
func swept(plan, members string, fee, feeCost, sent, sweepCost uint64) []fact {
	return []fact{
		planned(plan, members),
		signed(plan, chain.StepFee, fee), final(plan, cost(feeCost)),
		signed(plan, chain.StepSweep, 0), final(plan, moved(sent, sent, sweepCost)), over(plan),
	}
}

func cost(units uint64) Result { return Result{Cost: chain.Units(units)} }

func moved(sent, arrived, cost uint64) Result {
	return Result{Sent: chain.Units(sent), Arrived: chain.Units(arrived), Cost: chain.Units(cost)}
}

func join(all ...[]fact) (joined []fact) {
	for _, facts := range all {
		joined = append(joined, facts...)
	}

	return joined
}

func minute(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

// figures returns the figures of a settlement that are not 0.
func (s Settlement) figures() string {
	out := string(s.Status)
	if s.Reason != "" && s.Status != settlement.Reverted {
		out += " " + string(s.Reason)
	}

	for _, of := range []struct {
		name   string
		amount chain.Amount
	}{
		{"paid", s.FeePaid},
		{"carried", s.FeeCarried},
		{"costs", s.NetworkFees},
		{"residue in", s.ResidueIn},
		{"residue out", s.ResidueOut},
	} {
		if !of.amount.IsZero() {
			out += fmt.Sprintf(", %s %s", of.name, of.amount)
		}
	}

	if s.NetReleased != nil {
		out += ", net " + s.NetReleased.String()
	}

	return out
}

// figures returns the balances of a place that are not 0.
func (o Outcome) figures() string {
	var all []string

	for _, a := range o.Assets {
		for _, of := range []struct {
			name   string
			amount chain.Amount
		}{{"free", a.Free}, {"owed", a.Owed}, {"unclaimed", a.Unclaimed}, {"withheld", a.Withheld}} {
			if !of.amount.IsZero() {
				all = append(all, fmt.Sprintf("%s %s %s", of.amount, a.ID, of.name))
			}
		}
	}

	if !o.FeeAhead.IsZero() {
		all = append(all, "fee ahead "+o.FeeAhead.String())
	}

	return strings.Join(all, ", ")
}

func checkHistories(t *testing.T, all []history) {
	t.Helper()

	for _, h := range all {
		t.Run(h.name, func(t *testing.T) {
			out := Fold(factsOf(h.facts))

			for _, s := range out.Settlements {
				if got := s.figures(); got != h.want[s.ID] {
					t.Errorf("%s\n is   %s\n want %s", s.ID, got, h.want[s.ID])
				}
			}

			if len(out.Settlements) != len(h.want) {
				t.Errorf("%d settlements, want %d", len(out.Settlements), len(h.want))
			}

			if got := out.figures(); got != h.place {
				t.Errorf("the place\n has  %q\n want %q", got, h.place)
			}

			var carry string
			if !out.CarriedOut.IsZero() || !out.CarriedIn.IsZero() {
				carry = fmt.Sprintf("out %s, in %s", out.CarriedOut, out.CarriedIn)
			}

			if carry != h.carry {
				t.Errorf("the carry is %q, want %q", carry, h.carry)
			}
		})
	}
}

// Releases that no fork touches.
func TestReleases(t *testing.T) {
	checkHistories(t, []history{
		{
			name:  "a payment waits",
			facts: []fact{coin("a", 100)},
			want:  map[string]string{"a": "pending, carried 10"},
		},
		{
			name:  "a deposit of native coin pays its fee and its costs",
			facts: join([]fact{coin("a", 100)}, swept("r", "a", 10, 1, 87, 2)),
			want:  map[string]string{"a": "released, paid 10, costs 3, net 87"},
		},
		{
			name: "its fee is final, and its sweep under way",
			facts: []fact{
				coin("a", 100),
				planned("r", "a"),
				signed("r", chain.StepFee, 10),
				final("r", cost(1)),
				signed("r", chain.StepSweep, 0),
			},
			want: map[string]string{"a": "releasing, paid 10, costs 1"},
		},
		{
			name:  "costs are split by gross, and the oldest bears what does not divide",
			facts: join([]fact{coin("a", 100), coin("b", 200)}, swept("r", "a b", 20, 1, 275, 4)),
			want: map[string]string{
				"a": "released, paid 10, costs 2, net 88",
				"b": "released, paid 10, costs 3, net 187",
			},
		},
		{
			name: "a token has its fee paid by the master wallet, and a top-up leaves residue",
			facts: []fact{
				token("a", 500),
				planned("r", "a"),
				signed(
					"r",
					chain.StepTopUp,
					0,
				),
				final("r", Result{Cost: chain.Units(1), Brought: chain.Units(9)}),
				signed("r", chain.StepFee, 10),
				final("r", cost(1)),
				signed("r", chain.StepSweep, 0),
				final("r", moved(500, 500, 4)),
				over("r"),
			},
			want:  map[string]string{"a": "released, paid 10, costs 6, residue out 5, net 500"},
			place: "5 coin free",
		},
		{
			name: "residue pays for the next sweep",
			facts: []fact{
				token("a", 500),
				token("b", 500),
				planned("r", "a"),
				signed(
					"r",
					chain.StepTopUp,
					0,
				),
				final("r", Result{Cost: chain.Units(1), Brought: chain.Units(9)}),
				signed("r", chain.StepSweep, 10),
				final("r", moved(500, 500, 4)),
				over("r"),
				planned(
					"s",
					"b",
				),
				signed("s", chain.StepSweep, 10),
				final("s", moved(500, 500, 5)),
				over("s"),
			},
			want: map[string]string{
				"a": "released, paid 10, costs 5, residue out 5, net 500",
				"b": "released, paid 10, costs 5, residue in 5, net 500",
			},
		},
		{
			name: "the oldest bears what a token keeps",
			facts: []fact{
				token("a", 100),
				token("b", 200),
				planned("r", "a b"),
				signed("r", chain.StepSweep, 20),
				final("r", moved(300, 297, 0)),
				over("r"),
			},
			want: map[string]string{"a": "released, paid 10, net 97", "b": "released, paid 10, net 200"},
		},
		{
			name: "more than was theirs is split by gross",
			facts: []fact{
				token("a", 100),
				token("b", 200),
				planned("r", "a b"),
				signed("r", chain.StepSweep, 20),
				final("r", moved(300, 330, 0)),
				over("r"),
			},
			want: map[string]string{"a": "released, paid 10, net 110", "b": "released, paid 10, net 220"},
		},
		{
			name: "where outputs are spent the costs are split by input, none beyond its deposit",
			facts: []fact{
				outputs,
				coin("a", 1000),
				coin("b", 13),
				coin("c", 500),
				planned("r", "a b c"),
				signed("r", chain.StepSweep, 30),
				final("r", moved(1453, 1453, 30)),
				over("r"),
			},
			want: map[string]string{
				"a": "released, paid 10, costs 14, net 976",
				"b": "released, paid 10, costs 3, net 0",
				"c": "released, paid 10, costs 13, net 477",
			},
		},
		{
			name: "a fee that no transaction pays is carried",
			facts: []fact{
				coin(
					"a",
					100,
				),
				planned("r", "a"),
				signed("r", chain.StepSweep, 0),
				final("r", moved(98, 98, 2)),
				over("r"),
			},
			want:  map[string]string{"a": "released, carried 10, costs 2, net 98"},
			carry: "out 10, in 0",
		},
		{
			name: "a fee under way is neither paid nor carried to others",
			facts: []fact{
				token("a", 100),
				planned("r", "a"),
				signed("r", chain.StepFee, 10),
				signed("r", chain.StepSweep, 0),
				final("r", moved(100, 100, 0)),
				over("r"),
			},
			want: map[string]string{"a": "released, carried 10, net 100"},
		},
		{
			name: "a release pays what others left, and its bearer shows it",
			facts: []fact{
				coin("a", 100),
				coin("b", 100),
				planned("r", "a b"),
				carrying("r", 7, "b"),
				signed("r", chain.StepSweep, 27),
				final("r", moved(171, 171, 2)),
				over("r"),
			},
			want: map[string]string{
				"a": "released, paid 10, costs 1, net 89",
				"b": "released, paid 17, costs 1, net 82",
			},
			carry: "out 0, in 7",
		},
		{
			name:  "a release that is queued has taken what others left",
			facts: []fact{coin("a", 100), planned("r", "a"), carrying("r", 7, "a")},
			want:  map[string]string{"a": "pending, carried 10"},
			carry: "out 0, in 7",
		},
		{
			name:  "and gives it back where nothing of it is signed in the end",
			facts: []fact{coin("a", 100), planned("r", "a"), carrying("r", 7, "a"), over("r")},
			want:  map[string]string{"a": "pending, carried 10"},
		},
		{
			name: "a release that comes to nothing gives back what others left",
			facts: []fact{
				coin(
					"a",
					100,
				),
				planned("r", "a"),
				carrying("r", 7, "a"),
				signed("r", chain.StepFee, 17),
				failed("r", 0),
				over("r"),
				said("a", 15, settlement.Failed, settlement.TransactionFailed),
			},
			want: map[string]string{"a": "failed transaction_failed, carried 10"},
		},
		{
			name: "and bears it where that was paid",
			facts: []fact{
				coin(
					"a",
					100,
				),
				planned("r", "a"),
				carrying("r", 7, "a"),
				signed("r", chain.StepFee, 17),
				final("r", cost(1)),
				signed("r", chain.StepSweep, 0),
				failed("r", 2),
				over("r"),
				said("a", 15, settlement.Failed, settlement.TransactionFailed),
			},
			want:  map[string]string{"a": "failed transaction_failed, paid 17, costs 3"},
			carry: "out 0, in 7",
		},
		{
			name: "what was paid is not paid again",
			facts: join([]fact{
				coin("a", 100),
				planned("r", "a"),
				signed("r", chain.StepFee, 10),
				final("r", cost(1)),
				signed("r", chain.StepSweep, 0),
				failed("r", 2),
				over("r"),
				said(
					"a",
					15,
					settlement.Failed,
					settlement.TransactionFailed,
				),
				said("a", 16, settlement.Pending, ""),
				planned("s", "a"),
				signed("s", chain.StepSweep, 0),
				final("s", moved(84, 84, 3)),
				over("s"),
			}),
			want: map[string]string{"a": "released, paid 10, costs 6, net 84"},
		},
		{
			name: "a token that reports success and moves nothing is not released",
			facts: []fact{
				token(
					"a",
					100,
				),
				planned("r", "a"),
				signed("r", chain.StepSweep, 0),
				final("r", moved(100, 0, 0)),
				over("r"),
				said("a", 15, settlement.Failed, settlement.TransactionFailed),
			},
			want: map[string]string{"a": "failed transaction_failed, carried 10"},
		},
	})
}

// Forks under releases.
func TestForks(t *testing.T) {
	two := join([]fact{coin("a", 100), coin("b", 100)}, swept("r", "a b", 20, 2, 176, 2))

	checkHistories(t, []history{
		{
			name:  "a sweep that leaves its block releases nothing",
			facts: join([]fact{coin("a", 100)}, swept("r", "a", 10, 1, 87, 2), []fact{leftBlock("r", 1)}),
			want:  map[string]string{"a": "reverted, paid 10, costs 1"},
		},
		{
			name: "and is back at another cost, which others have paid, and which the next release gets back",
			facts: join(
				[]fact{coin("a", 100), coin("b", 100)},
				swept("r", "a", 10, 1, 87, 2),
				[]fact{leftBlock("r", 0), returned("r", 0, 4)},
			),
			want: map[string]string{
				"a": "released, paid 10, costs 6, net 84", "b": "pending, carried 10",
			},
			place: "3 coin owed, 3 coin unclaimed",
		},
		{
			name: "the next release after that",
			facts: join(
				[]fact{coin("a", 100), coin("b", 100)},
				swept("r", "a", 10, 1, 87, 2),
				[]fact{leftBlock("r", 0), returned("r", 0, 4)},
				swept("s", "b", 10, 1, 84, 2),
			),
			want: map[string]string{
				"a": "released, paid 10, costs 6, net 84", "b": "released, paid 10, costs 3, net 87",
			},
		},
		{
			name:  "two are released",
			facts: two,
			want: map[string]string{
				"a": "released, paid 10, costs 2, net 88", "b": "released, paid 10, costs 2, net 88",
			},
		},
		{
			name:  "one of two is gone: what it paid and brought waits for the payment in its place",
			facts: join(two, []fact{gone("b", 30)}),
			want: map[string]string{
				"a": "released, paid 10, costs 4, net 86", "b": "reverted, carried 10",
			},
			place: "100 coin owed, 90 coin unclaimed, fee ahead 10",
		},
		{
			name:  "a payment in its place claims it without a transaction",
			facts: join(two, []fact{gone("b", 30), coin("c", 100), planned("s", "c"), over("s")}),
			want: map[string]string{
				"a": "released, paid 10, costs 4, net 86",
				"b": "reverted, carried 10",
				"c": "released, paid 10, net 90",
			},
		},
		{
			name:  "nothing is claimed for a payment that is there",
			facts: join(two, []fact{gone("b", 30), coin("c", 150), planned("s", "c"), over("s")}),
			want: map[string]string{
				"a": "released, paid 10, costs 4, net 86",
				"b": "reverted, carried 10",
				"c": "pending, paid 10",
			},
			place: "90 coin owed, 90 coin unclaimed",
		},
		{
			name: "the claim ends with the sweep's block",
			facts: join(
				two,
				[]fact{gone("b", 30), coin("c", 100), planned("s", "c"), over("s"), leftBlock("r", 1)},
			),
			want: map[string]string{
				"a": "reverted, paid 10, costs 2", "b": "reverted, carried 10", "c": "pending, paid 10",
			},
		},
		{
			name:  "it comes back, and all is as it was",
			facts: join(two, []fact{gone("b", 30), back("b", 100)}),
			want: map[string]string{
				"a": "released, paid 10, costs 2, net 88", "b": "released, paid 10, costs 2, net 88",
			},
		},
		{
			name: "one payment that two sweeps moved, in place of two that are gone",
			facts: join(
				[]fact{coin("a", 50)},
				swept("r", "a", 10, 1, 37, 2),
				[]fact{coin("b", 50)},
				swept("s", "b", 10, 1, 37, 2),
				[]fact{gone("a", 30), gone("b", 30), coin("c", 100), planned("u", "c"), over("u")},
			),
			want: map[string]string{
				"a": "reverted, carried 10", "b": "reverted, carried 10", "c": "released, paid 10, net 74",
			},
			place: "fee ahead 10",
		},
		{
			name: "a token that takes a fee, whose payment came back smaller",
			facts: []fact{
				token(
					"a",
					100,
				),
				planned("r", "a"),
				signed("r", chain.StepSweep, 10),
				final("r", moved(100, 99, 0)),
				over("r"),
				token("b", 5),
				gone("a", 30),
				back("a", 95),
			},
			want:  map[string]string{"a": "released, paid 10, net 95", "b": "pending, carried 10"},
			place: "5 token owed, 4 token unclaimed",
		},
		{
			name: "a release without the one that was gone when its sweep was made",
			facts: []fact{
				coin(
					"a",
					100,
				),
				coin("b", 100),
				planned("r", "a b"),
				signed("r", chain.StepFee, 20),
				final("r", cost(2)),
				gone(
					"b",
					12,
				),
				signed("r", chain.StepSweep, 0),
				onlyFor("r", "a"),
				final("r", moved(76, 76, 2)),
				over("r"),
				back("b", 100),
				said("b", 40, settlement.Pending, ""),
			},
			want: map[string]string{
				"a": "released, paid 10, costs 3, residue out 6, net 76",
				"b": "pending, paid 10, costs 1, residue out 5",
			},
			place: "11 coin free",
		},
		{
			name: "a payment that is gone before its release is over has failed",
			facts: []fact{
				coin(
					"a",
					100,
				),
				planned("r", "a"),
				signed("r", chain.StepFee, 10),
				gone("a", 10),
				final("r", cost(1)),
			},
			want:  map[string]string{"a": "failed payment_orphaned, carried 10"},
			place: "11 coin owed, fee ahead 10",
		},
		{
			name: "and stays so when its sweep is final",
			facts: []fact{
				coin("a", 100),
				planned("r", "a"),
				signed("r", chain.StepSweep, 0),
				gone("a", 10),
				final("r", moved(98, 98, 2)),
				over("r"),
			},
			want:  map[string]string{"a": "failed payment_orphaned, carried 10"},
			place: "100 coin owed, 98 coin unclaimed",
		},
		{
			name: "the first of two sweeps has released it",
			facts: []fact{
				coin(
					"a",
					100,
				),
				planned("r", "a"),
				signed("r", chain.StepSweep, 0),
				final("r", moved(98, 98, 2)),
				over("r"),
				planned("s", "a"),
				signed("s", chain.StepSweep, 0),
			},
			want:  map[string]string{"a": "released, carried 10, costs 2, net 98"},
			carry: "out 10, in 0",
		},
	})
}

// The examples of docs/settlements.md, in hundred-thousandths of a coin.
func TestExamplesOfThePage(t *testing.T) {
	dearer := func(f *Facts) {
		for i := range f.Deposits {
			f.Deposits[i].Fee = chain.Units(
				map[string]uint64{coinID: 500, tokenID: 80}[f.Deposits[i].AssetID],
			)
		}
	}
	native := join([]fact{coin("a", 100_000), dearer}, swept("r", "a", 500, 42, 99_416, 42))

	checkHistories(t, []history{
		{
			name:  "native coin with its fee",
			facts: native,
			want:  map[string]string{"a": "released, paid 500, costs 84, net 99416"},
		},
		{
			name: "a token with a top-up",
			facts: []fact{
				token("a", 400),
				dearer,
				planned("r", "a"),
				signed(
					"r",
					chain.StepTopUp,
					0,
				),
				final("r", Result{Cost: chain.Units(42), Brought: chain.Units(150)}),
				signed("r", chain.StepFee, 80),
				final("r", cost(42)),
				signed("r", chain.StepSweep, 0),
				final("r", moved(400, 400, 130)),
				over("r"),
			},
			want:  map[string]string{"a": "released, paid 80, costs 214, residue out 20, net 400"},
			place: "20 coin free",
		},
		{
			name: "a fork takes the payment for good, and another one is in its place",
			facts: join(
				native,
				[]fact{gone("a", 30), coin("b", 100_000), dearer, planned("s", "b"), over("s")},
			),
			want: map[string]string{"a": "reverted, carried 500", "b": "released, paid 500, net 99416"},
		},
	})
}

// What a settlement waits for, and why it failed.
func TestStatuses(t *testing.T) {
	checkHistories(t, []history{
		{
			name: "held, by the latest reason",
			facts: []fact{
				coin("a", 100),
				said("a", 1, settlement.Held, settlement.Uneconomic),
				said("a", 2, settlement.Held, settlement.BelowSweepMin),
			},
			want: map[string]string{"a": "held below_sweep_min, carried 10"},
		},
		{
			name: "held, while its release is queued",
			facts: []fact{
				coin("a", 100),
				said("a", 1, settlement.Held, settlement.Uneconomic),
				planned("r", "a"),
			},
			want: map[string]string{"a": "held uneconomic, carried 10"},
		},
		{
			name: "failed, and retried",
			facts: []fact{
				coin(
					"a",
					100,
				),
				said("a", 1, settlement.Failed, settlement.FundsMissing),
				said("a", 2, settlement.Pending, ""),
			},
			want: map[string]string{"a": "pending, carried 10"},
		},
		{
			name: "what had failed stays so while its payment is gone",
			facts: []fact{
				coin("a", 100),
				said("a", 1, settlement.Failed, settlement.FundsMissing),
				gone("a", 2),
			},
			want: map[string]string{"a": "failed funds_missing, carried 10"},
		},
		{
			name: "failed while a fee of its release is under way",
			facts: []fact{
				coin("a", 100),
				planned("r", "a"),
				signed("r", chain.StepFee, 10),
				said("a", 15, settlement.Failed, settlement.TransactionFailed),
				over("r"),
			},
			want: map[string]string{"a": "failed transaction_failed, carried 10"},
		},
		{
			name: "a foreign transaction is withheld until a person has said what it was",
			facts: []fact{
				coin("a", 100),
				stolen(coinID, 30, false),
			},
			want:  map[string]string{"a": "pending, carried 10"},
			place: "30 coin withheld",
		},
		{
			name: "then the next release bears it",
			facts: join(
				[]fact{coin("a", 100), stolen(coinID, 30, true)},
				swept("r", "a", 10, 1, 57, 2),
			),
			want: map[string]string{"a": "released, paid 10, costs 3, net 57"},
		},
	})
}

func TestHeldSinceTheFirstReason(t *testing.T) {
	f := factsOf([]fact{
		coin(
			"a",
			100,
		),
		said("a", 1, settlement.Held, settlement.Uneconomic),
		said("a", 2, settlement.Pending, ""),
		said(
			"a",
			3,
			settlement.Held,
			settlement.Uneconomic,
		),
		said("a", 4, settlement.Held, settlement.BelowSweepMin),
	})

	if got := Fold(f).Settlements[0].HeldSince; got != minute(3) {
		t.Errorf("held since %s, want %s", got, minute(3))
	}
}

func TestSettlementWithoutTransactionsShowsItsResult(t *testing.T) {
	f := factsOf([]fact{coin("a", 100)})
	f.Deposits[0].Stored = &Stored{
		FeePaid: chain.Units(
			10,
		),
		NetReleased: chain.Units(90),
		FeeTx:       "sim_fee",
		SweepTx:     "sim_sweep",
		At:          minute(1),
	}

	out := Fold(f)
	if s := out.Settlements[0]; s.figures() != "released, paid 10, net 90" || s.SweepTx != "sim_sweep" ||
		s.ReleasedAt != minute(1) {
		t.Errorf("it is %s by %s at %s", s.figures(), s.SweepTx, s.ReleasedAt)
	}

	if !out.CarriedOut.IsZero() || out.figures() != "" {
		t.Errorf("it moves %s, and carries %s", out.figures(), out.CarriedOut)
	}
}
