package sweep

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/settlement"
)

func TestEligibleTakesWhatMayGoTogether(t *testing.T) {
	due := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := func(id string, change func(*settlement.Settlement)) settlement.Settlement {
		out := settlement.Settlement{ID: id, Status: settlement.Pending, DueAt: due}
		change(&out)

		return out
	}
	keep := func(*settlement.Settlement) {}

	got := eligible([]settlement.Settlement{
		s("c", keep),
		s("a", keep),
		s("b", func(s *settlement.Settlement) { s.Status = settlement.Held }),
		s("d", func(s *settlement.Settlement) { s.SweepID = "r" }),
		s("e", func(s *settlement.Settlement) { s.DueAt = time.Time{} }),
		s("f", func(s *settlement.Settlement) { s.Simulated = true }),
		s("g", func(s *settlement.Settlement) { s.Owner.AccountID = "other" }),
		s("h", func(s *settlement.Settlement) { s.Status = settlement.Releasing }),
	})
	if ids := got.ids(); len(ids) != 3 || ids[0] != "a" || ids[1] != "b" || ids[2] != "c" {
		t.Errorf("gathered %v", ids)
	}
}

// One release takes the largest settlements of a group, in its order, each with its coin.
func TestReleaseTakesTheLargest(t *testing.T) {
	var (
		many  group
		coins []chain.Coin
	)

	for i := range uint64(2 * maxGroup) {
		gross := chain.Units(i % maxGroup * 2) // two of each size
		many = append(many, settlement.Settlement{ID: fmt.Sprintf("%03d", i), Gross: gross})
		coins = append(coins, chain.Coin{Amount: gross})
	}

	taken, spent, rest := many.largest(coins)
	if len(taken) != maxGroup || len(spent) != maxGroup || len(rest) != maxGroup ||
		!slices.IsSorted(taken.ids()) {
		t.Fatalf(
			"%d with %d coins of %v are taken, %d are left",
			len(taken),
			len(spent),
			taken.ids(),
			len(rest),
		)
	}

	for i, s := range taken {
		if spent[i].Amount != s.Gross || s.Gross.Less(chain.Units(maxGroup)) {
			t.Errorf("%s of %s goes with a coin of %s", s.ID, s.Gross, spent[i].Amount)
		}
	}

	if all, _, rest := many[:maxGroup].largest(nil); len(all) != maxGroup || rest != nil {
		t.Errorf("%d of %d are taken, %d are left", len(all), maxGroup, len(rest))
	}
}

func TestBelowMinimum(t *testing.T) {
	g := group{{USDValue: decimal.NewFromInt(4)}, {USDValue: decimal.NewFromInt(9)}}
	for minimum, want := range map[int64]bool{0: false, 9: false, 10: true} {
		if got := g.belowMin(decimal.NewFromInt(minimum)); got != want {
			t.Errorf("minimum %d: below is %v", minimum, got)
		}
	}
}

func TestUneconomicAboveHalfOfTheWorth(t *testing.T) {
	steps := func(fee uint64) []chain.SweepStep {
		return []chain.SweepStep{{NetworkFee: chain.Units(1)}, {NetworkFee: chain.Units(fee - 1)}}
	}
	native := group{
		{FeeSource: settlement.FromDeposit, Gross: chain.Units(60)},
		{FeeSource: settlement.FromDeposit, Gross: chain.Units(41)},
	}

	token := group{
		{
			FeeSource:   settlement.FromMaster,
			Gross:       chain.Units(1000),
			USDValue:    decimal.NewFromInt(10),
			NativePrice: decimal.NewFromInt(1),
		},
		{
			FeeSource:   settlement.FromMaster,
			Gross:       chain.Units(3000),
			USDValue:    decimal.NewFromInt(30),
			NativePrice: decimal.NewFromInt(200),
		},
	}
	for _, c := range []struct {
		name string
		g    group
		left uint64
		fee  uint64
		want bool
	}{
		{"half of native", native, 101, 50, false},
		{"more than half of native", native, 101, 51, true},
		{"half of what is left of native", native, 11, 5, false},
		{"more than half of what is left of native", native, 11, 6, true},
		{"half of tokens", token, 4000, 10, false},
		{"more than half of tokens", token, 4000, 11, true},
		{"half of what is left of tokens", token, 2000, 5, false},
		{"more than half of what is left of tokens", token, 1999, 5, true},
	} {
		if got := c.g.uneconomic(
			steps(c.fee),
			chain.Units(c.left),
			2,
			decimal.NewFromInt(200),
		); got != c.want {
			t.Errorf("%s: uneconomic is %v", c.name, got)
		}
	}
}

// A release brings its settlements their deposits, less what the address owes, with what it claims of earlier sweeps.
func TestWhatIsLeftOfARelease(t *testing.T) {
	for _, c := range []struct{ owed, claimed, want uint64 }{
		{0, 0, 100},
		{99, 0, 1},
		{100, 0, 0},
		{130, 0, 0},
		{60, 25, 65},
		{60, 60, 100},
		{0, 25, 100},
	} {
		r := settlement.Sweep{
			Amount: chain.Units(100),
			Owed:   chain.Units(c.owed),
			Claims: []settlement.Brought{{Amount: chain.Units(c.claimed)}},
		}
		if got := leftOf(r); got != chain.Units(c.want) {
			t.Errorf("owed %d, claimed %d: %s is left, want %d", c.owed, c.claimed, got, c.want)
		}
	}
}

func TestPlanIsCheckedBeforeItIsCarriedOut(t *testing.T) {
	n := chain.Units
	master, deposit := chain.Party{Address: "master"}, chain.Party{Address: "deposit"}
	r := chain.SweepRequest{
		Asset:      chain.Asset{ID: "token"},
		Deposit:    deposit,
		Master:     master,
		FeeAddress: "fee",
		Amount:     n(100),
		Fee:        n(5),
	}
	step := func(
		kind chain.StepKind,
		from chain.Party,
		to chain.Address,
		asset string,
		amount, paysFee uint64,
	) chain.SweepStep {
		return chain.SweepStep{
			Kind:       kind,
			PaysFee:    n(paysFee),
			NetworkFee: n(1),
			Order: chain.Order{
				From:    from,
				MaxFee:  n(2),
				Outputs: []chain.Output{{To: to, AssetID: asset, Amount: n(amount)}},
			},
		}
	}
	topup := step(chain.StepTopUp, master, "deposit", "coin", 3, 0)
	fee := step(chain.StepFee, master, "fee", "coin", 5, 5)
	sweep := step(chain.StepSweep, deposit, "master", "token", 100, 0)
	foreign := sweep
	foreign.Order.FeePayer = &chain.Party{Address: "thief"}
	free := sweep

	free.Order.MaxFee = chain.Amount{}
	for _, c := range []struct {
		name  string
		steps []chain.SweepStep
		ok    bool
	}{
		{"a good plan", []chain.SweepStep{topup, fee, sweep}, true},
		{"without the fee", []chain.SweepStep{topup, sweep}, true},
		{"nothing", nil, false},
		{"no sweep", []chain.SweepStep{topup, fee}, false},
		{"sweep first", []chain.SweepStep{sweep, topup}, false},
		{"two sweeps", []chain.SweepStep{sweep, sweep}, false},
		{"sweep to a thief", []chain.SweepStep{step(chain.StepSweep, deposit, "thief", "token", 100, 0)}, false},
		{"sweep of more", []chain.SweepStep{step(chain.StepSweep, deposit, "master", "token", 101, 0)}, false},
		{
			"sweep of another asset",
			[]chain.SweepStep{step(chain.StepSweep, deposit, "master", "coin", 100, 0)},
			false,
		},
		{
			"sweep from the master wallet",
			[]chain.SweepStep{step(chain.StepSweep, master, "master", "token", 100, 0)},
			false,
		},
		{"top-up of a thief", []chain.SweepStep{step(chain.StepTopUp, master, "thief", "coin", 3, 0), sweep}, false},
		{"another fee", []chain.SweepStep{step(chain.StepFee, master, "fee", "coin", 6, 6), sweep}, false},
		{
			"a fee that is not what it says",
			[]chain.SweepStep{step(chain.StepFee, master, "fee", "coin", 6, 5), sweep},
			false,
		},
		{
			"energy of a seller",
			[]chain.SweepStep{step(chain.StepDelegate, master, "seller", "coin", 3, 0), sweep},
			true,
		},
		{
			"energy of a thief",
			[]chain.SweepStep{step(chain.StepDelegate, master, "thief", "coin", 3, 0), sweep},
			false,
		},
		{
			"energy for tokens",
			[]chain.SweepStep{step(chain.StepDelegate, master, "seller", "token", 3, 0), sweep},
			false,
		},
		{"fees paid by somebody", []chain.SweepStep{foreign}, false},
		{"no maximum", []chain.SweepStep{free}, false},
	} {
		err := checkPlan(r, c.steps, "coin", []chain.Address{"seller"})
		if (err == nil) != c.ok ||
			(err != nil && (!errors.Is(err, fault.Invalid) || fault.Code(err) != "not_releasable")) {
			t.Errorf("%s: %v", c.name, err)
		}
	}

	if got := allFromMaster([]chain.SweepStep{topup, fee, sweep}, "master", "coin"); got != n(3+2+5+2) {
		t.Errorf("the master wallet has to hold %s", got)
	}
}

func TestOnlyWhatReachesTheMasterWalletArrived(t *testing.T) {
	r := settlement.Sweep{
		Master:  chain.Party{Address: "master"},
		AssetID: "coin",
	}
	sweep := wallet.Transaction{
		Transfers: []chain.Transfer{
			{To: "master", AssetID: "coin", Amount: chain.Units(70)},
			{To: "fees", AssetID: "coin", Amount: chain.Units(5)},
			{To: "master", AssetID: "token", Amount: chain.Units(3)},
			{To: "master", AssetID: "coin", Amount: chain.Units(20)},
		},
	}

	if got := arrivedBy(&r, sweep); got != chain.Units(90) {
		t.Errorf("%s arrived, want 90", got)
	}
}
