package ledger

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/deepcopy"
	"github.com/seed-8ee7f392/payments/settlement"
)

const (
	coinID  = "coin"
	tokenID = "token"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var sameAmounts = cmp.Comparer(func(a, b chain.Amount) bool { return a == b })

// Whatever the facts are, the rules hold.
func TestFoldOfRandomFacts(t *testing.T) {
	rapid.Check(t, checkFold)
}

// The long form of TestFoldOfRandomFacts: as many facts as SOAKTIME allows.
func TestSoakFold(t *testing.T) {
	limit, _ := time.ParseDuration(os.Getenv("SOAKTIME"))
	cases := 0

	for until := time.Now().Add(limit); ; {
		rapid.Check(t, func(t *rapid.T) {
			cases++

			checkFold(t)
		})

		if t.Failed() || time.Now().After(until) {
			break
		}
	}

	t.Logf("%d random facts of a place were folded", cases)
}

func checkFold(t *rapid.T) {
	f := drawFacts(t)
	untouched := copyOf(f)
	out := Fold(f)

	checkSame(t, "folding changed the facts", untouched, f)
	checkSame(t, "folded once more", out, Fold(f))
	checkOrder(t, f, out)
	checkRemoved(t, f, out)
	checkAppended(t, f, out)
	checkFork(t, f, out)
	checkCheckpoint(t, f, out)
	checkSums(t, f, out)
}

// copyOf returns a copy of facts that shares nothing with them.
func copyOf(f Facts) Facts { return *copyFacts(&f) }

var copyFacts = deepcopy.OfStored[Facts]()

func checkSame[T any](t *rapid.T, what string, want, got T) {
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%s:\n%s", what, cmp.Diff(want, got, sameAmounts))
	}
}

// checkOrder checks that the order of facts changes nothing.
func checkOrder(t *rapid.T, f Facts, out Outcome) {
	other := copyOf(f)
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))

	shuffle(r, other.Deposits)
	shuffle(r, other.Plans)
	shuffle(r, other.Withdrawals)

	for i := range other.Deposits {
		shuffle(r, other.Deposits[i].Verdicts)
	}

	for i := range other.Plans {
		shuffle(r, other.Plans[i].Members)
		shuffle(r, other.Plans[i].Steps)

		for j := range other.Plans[i].Steps {
			shuffle(r, other.Plans[i].Steps[j].Members)
			shuffle(r, other.Plans[i].Steps[j].Results)
		}
	}

	checkSame(t, "in another order", out, Fold(other))
}

func shuffle[T any](r *rand.Rand, all []T) {
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

// checkRemoved checks that a fact that is removed and added once more changes nothing.
func checkRemoved(t *rapid.T, f Facts, out Outcome) {
	without := copyOf(f)

	switch kind := rapid.IntRange(0, 2).Draw(t, "kind removed"); {
	case kind == 0 && len(f.Deposits) > 0:
		i := rapid.IntRange(0, len(f.Deposits)-1).Draw(t, "deposit removed")
		without.Deposits = slices.Delete(without.Deposits, i, i+1)
		Fold(without)
		without.Deposits = append(without.Deposits, f.Deposits[i])
	case kind == 1 && len(f.Plans) > 0:
		i := rapid.IntRange(0, len(f.Plans)-1).Draw(t, "plan removed")
		without.Plans = slices.Delete(without.Plans, i, i+1)
		Fold(without)
		without.Plans = append(without.Plans, f.Plans[i])
	case len(f.Withdrawals) > 0:
		i := rapid.IntRange(0, len(f.Withdrawals)-1).Draw(t, "withdrawal removed")
		without.Withdrawals = slices.Delete(without.Withdrawals, i, i+1)
		Fold(without)
		without.Withdrawals = append(without.Withdrawals, f.Withdrawals[i])
	}

	checkSame(t, "a fact was removed and added", out, Fold(without))
}

// checkAppended checks that a later plan changes nothing that earlier ones released.
func checkAppended(t *rapid.T, f Facts, out Outcome) {
	later := drawPlan(t, f, len(f.Plans))
	f.Plans = append(slices.Clone(f.Plans), later)
	after := Fold(f)

	for i, s := range out.Settlements {
		if s.NetReleased != nil {
			checkSame(t, "a later plan changed what was released", s, after.Settlements[i])
		}
	}
}

// checkCheckpoint checks that a place goes on from a checkpoint as from all of its facts, whatever is in those.
func checkCheckpoint(t *rapid.T, f Facts, _ Outcome) {
	later := drawFacts(t)
	later.Native, later.SpendsOutputs = f.Native, f.SpendsOutputs
	all := copyOf(f)

	for i := range later.Deposits {
		later.Deposits[i].ID = "later " + later.Deposits[i].ID
	}

	for i := range later.Plans {
		p := &later.Plans[i]
		p.ID, p.Bearer, p.Number = "later "+p.ID, "later "+p.Bearer, len(f.Plans)+i

		for j := range p.Members {
			p.Members[j] = "later " + p.Members[j]
		}

		for j := range p.Steps {
			for k := range p.Steps[j].Members {
				p.Steps[j].Members[k] = "later " + p.Steps[j].Members[k]
			}
		}
	}

	for i := range later.Withdrawals {
		later.Withdrawals[i].Plans += len(f.Plans)
	}

	for i := range all.Withdrawals { // those before the checkpoint are in it
		all.Withdrawals[i].Plans = min(all.Withdrawals[i].Plans, len(f.Plans)-1)
	}

	later.Since = Fold(all).Checkpoint()
	all.Deposits = append(all.Deposits, later.Deposits...)
	all.Plans = append(all.Plans, later.Plans...)
	all.Withdrawals = append(all.Withdrawals, later.Withdrawals...)

	whole, since := Fold(all), Fold(later)
	checkSame(t, "the places after a checkpoint", whole.Assets, since.Assets)
	checkSame(t, "the fee ahead after a checkpoint", whole.FeeAhead, since.FeeAhead)

	whole.Settlements = whole.Settlements[len(whole.Settlements)-len(since.Settlements):]
	checkSame(t, "what is shown", slices.Concat(whole.Settlements), slices.Concat(since.Settlements))
}

// checkFork checks that a payment which a fork takes and brings back changes nothing, and bears nothing meanwhile.
func checkFork(t *rapid.T, f Facts, out Outcome) {
	if len(f.Deposits) == 0 {
		return
	}

	i := rapid.IntRange(0, len(f.Deposits)-1).Draw(t, "payment that is gone")
	gone := copyOf(f)
	gone.Deposits[i].Canonical = false

	for _, s := range Fold(gone).Settlements {
		if s.ID != gone.Deposits[i].ID {
			continue
		}

		if !s.FeePaid.IsZero() || !s.NetworkFees.IsZero() ||
			s.NetReleased != nil && gone.Deposits[i].Stored == nil {
			t.Fatalf("its payment is gone, and it shows %+v", s)
		}
	}

	gone.Deposits[i].Canonical = f.Deposits[i].Canonical
	checkSame(t, "a payment was gone and is back", out, Fold(gone))
}

// checkSums checks that every base unit is somewhere, once.
func checkSums(t *rapid.T, f Facts, out Outcome) {
	shown := map[string]Settlement{}
	for _, s := range out.Settlements {
		shown[s.ID] = s
	}

	paid, costs := chain.Amount{}, chain.Amount{}

	for _, d := range f.Deposits {
		s := shown[d.ID]
		if d.Stored != nil {
			continue
		}

		paid, costs = paid.Add(s.FeePaid), costs.Add(s.NetworkFees)

		if s.FeePaid.Add(s.FeeCarried) != d.Fee.Add(s.CarriedIn) {
			t.Fatalf(
				"settlement %s paid %s and carries %s of %s and %s",
				s.ID,
				s.FeePaid,
				s.FeeCarried,
				d.Fee,
				s.CarriedIn,
			)
		}
	}

	var reached, burnt chain.Amount

	for _, p := range f.Plans {
		reached = reached.Add(p.feePaid())
		for _, of := range p.parts() {
			burnt = burnt.Add(of.cost())
		}
	}

	if !f.SpendsOutputs && paid.Add(out.FeeAhead) != reached {
		t.Fatalf("%s reached the fee address, %s is shown and %s is ahead", reached, paid, out.FeeAhead)
	}

	if burnt.Less(costs) {
		t.Fatalf("%s was burnt, and %s is shown", burnt, costs)
	}

	for _, id := range []string{coinID, tokenID} {
		if !f.SpendsOutputs {
			checkPlace(t, f, out, shown, id)
		}

		checkReleased(t, f, out, shown, id)
	}
}

// checkPlace checks that what came to the place less what left it is what lies there by the outcome.
func checkPlace(t *rapid.T, f Facts, out Outcome, shown map[string]Settlement, id string) {
	came, lies := new(big.Int), new(big.Int)

	for _, d := range f.Deposits {
		s := shown[d.ID]
		if !d.Canonical || d.Stored != nil || d.AssetID != id {
			continue
		}

		came.Add(came, d.Gross.Big())

		if s.NetReleased == nil {
			lies.Add(lies, d.Gross.Big())

			if d.Source == settlement.FromDeposit {
				lies.Sub(lies, s.FeePaid.Add(s.NetworkFees).Big())
			}
		}
	}

	for _, p := range f.Plans {
		for _, step := range p.Steps {
			for _, r := range step.Results {
				if !r.Canonical {
					continue
				}

				if id == coinID {
					came.Add(came, r.Brought.Big())

					if r.AtPlace {
						came.Sub(came, r.Cost.Big())
					}

					if p.AssetID == coinID {
						came.Sub(came, r.FeePaid.Big())
					}
				}

				if p.AssetID == id && step.Kind == chain.StepSweep && !r.Arrived.IsZero() {
					came.Sub(came, r.Sent.Big())
				}
			}
		}
	}

	for _, w := range f.Withdrawals {
		if w.Canonical && w.Known && w.AssetID == id {
			came.Sub(came, w.Amount.Big())
		}
	}

	of := out.Asset(id)
	lies.Add(lies, of.Free.Big()).Sub(lies, of.Owed.Big())

	if came.Cmp(lies) != 0 {
		t.Fatalf("%s of %s is at the place, and the outcome says %s", came, id, lies)
	}
}

// checkReleased checks that what reached the master wallet is what settlements show, and what nobody claims.
func checkReleased(t *rapid.T, f Facts, out Outcome, shown map[string]Settlement, id string) {
	var arrived, released chain.Amount

	for _, p := range f.Plans {
		if p.AssetID == id {
			_, _, by := p.swept()
			arrived = arrived.Add(by)
		}
	}

	for _, d := range f.Deposits {
		if s := shown[d.ID]; d.AssetID == id && d.Stored == nil && s.NetReleased != nil {
			released = released.Add(*s.NetReleased)
		}
	}

	released = released.Add(out.Asset(id).Unclaimed)
	if f.SpendsOutputs && !arrived.Less(released) { // what is for others is theirs in places of their own
		return
	}

	if arrived != released {
		t.Fatalf("%s of %s reached the master wallet, and settlements show %s", arrived, id, released)
	}
}

// drawFacts draws facts of a place, likely and unlikely ones.
func drawFacts(t *rapid.T) Facts {
	f := Facts{Native: coinID, SpendsOutputs: rapid.IntRange(0, 4).Draw(t, "outputs") == 0}

	for i := range rapid.IntRange(0, 6).Draw(t, "deposits") {
		f.Deposits = append(f.Deposits, drawDeposit(t, f, i))
	}

	for i := range rapid.IntRange(0, 5).Draw(t, "plans") {
		f.Plans = append(f.Plans, drawPlan(t, f, i))
	}

	for i := range rapid.IntRange(0, 2).Draw(t, "withdrawals") {
		f.Withdrawals = append(f.Withdrawals, Withdrawal{
			TxHash:    fmt.Sprint("foreign", i),
			Plans:     rapid.IntRange(0, len(f.Plans)).Draw(t, "plans before"),
			AssetID:   rapid.SampledFrom([]string{coinID, tokenID}).Draw(t, "asset"),
			Amount:    drawAmount(t, 1000),
			Canonical: rapid.Bool().Draw(t, "canonical"),
			Known:     rapid.Bool().Draw(t, "known"),
		})
	}

	return f
}

func drawDeposit(t *rapid.T, f Facts, i int) Deposit {
	d := Deposit{
		ID:        fmt.Sprintf("deposit%d", i),
		AssetID:   coinID,
		Gross:     drawAmount(t, 10_000).Add(chain.Units(1)),
		Fee:       drawAmount(t, 50),
		Source:    settlement.FromDeposit,
		Canonical: rapid.IntRange(0, 3).Draw(t, "canonical") > 0,
		LostAt:    drawTime(t),
	}

	if !f.SpendsOutputs && rapid.Bool().Draw(t, "token") {
		d.AssetID, d.Source = tokenID, settlement.FromMaster
	}

	for range rapid.IntRange(0, 2).Draw(t, "verdicts") {
		v := Verdict{At: drawTime(t), Status: settlement.Pending}

		switch rapid.IntRange(0, 2).Draw(t, "verdict") {
		case 0:
			v.Status, v.Reason = settlement.Held, settlement.Uneconomic
		case 1:
			v.Status, v.Reason = settlement.Failed, settlement.TransactionFailed
		}

		d.Verdicts = append(d.Verdicts, v)
	}

	return d
}

func drawPlan(t *rapid.T, f Facts, i int) Plan {
	p := Plan{
		ID:      fmt.Sprintf("plan%d-%d", rapid.IntRange(0, 9).Draw(t, "plan"), i),
		Number:  i,
		MadeAt:  drawTime(t),
		AssetID: coinID,
		CarryIn: drawAmount(t, 20),
		Over:    rapid.Bool().Draw(t, "over"),
	}

	if !f.SpendsOutputs && rapid.Bool().Draw(t, "of tokens") {
		p.AssetID = tokenID
	}

	for _, d := range f.Deposits {
		if d.AssetID == p.AssetID && d.Stored == nil && rapid.IntRange(0, 2).Draw(t, "member") > 0 {
			p.Members = append(p.Members, d.ID)
		}
	}

	if len(p.Members) > 0 {
		p.Bearer = rapid.SampledFrom(p.Members).Draw(t, "bearer")
	}

	kinds := []chain.StepKind{chain.StepTopUp, chain.StepFee, chain.StepSweep}
	for j, kind := range kinds {
		if rapid.IntRange(0, 3).Draw(t, "step") > 0 {
			p.Steps = append(p.Steps, drawStep(t, p, kind, fmt.Sprintf("%s-%d", p.ID, j)))
		}
	}

	return p
}

func drawStep(t *rapid.T, p Plan, kind chain.StepKind, id string) Step {
	step := Step{ID: id, Kind: kind, TxHash: id, Live: rapid.IntRange(0, 3).Draw(t, "live") == 0}
	if len(p.Members) > 0 && rapid.IntRange(0, 4).Draw(t, "for some") == 0 {
		step.Members = slices.Clone(p.Members[:rapid.IntRange(1, len(p.Members)).Draw(t, "some")])
	}

	if kind == chain.StepFee {
		step.PaysFee = drawAmount(t, 200)
	}

	for k := range rapid.IntRange(0, 2).Draw(t, "results") {
		r := Result{
			TxHash:    fmt.Sprintf("%s-%d", id, k),
			Canonical: rapid.IntRange(0, 3).Draw(t, "canonical") > 0,
			LearnedAt: drawTime(t),
			Cost:      drawAmount(t, 100),
			AtPlace:   p.AssetID == coinID || rapid.Bool().Draw(t, "at place"),
		}

		switch kind {
		case chain.StepTopUp:
			r.Brought = drawAmount(t, 100)
		case chain.StepSweep:
			r.Sent = drawAmount(t, 20_000)
			r.Arrived = drawAmount(t, 20_000)
		default:
			r.FeePaid = step.PaysFee
		}

		step.Results = append(step.Results, r)
	}

	return step
}

func drawAmount(t *rapid.T, most uint64) chain.Amount {
	return chain.Units(rapid.Uint64Range(0, most).Draw(t, "amount"))
}

func drawTime(t *rapid.T) time.Time {
	return start.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "minute")) * time.Minute)
}
