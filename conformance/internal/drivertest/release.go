package drivertest

import (
	"reflect"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var releaseTests = []testCase{
	{"NativeReleaseBalances", []Capability{Sender}, testReleaseNative},
	{"NativeReleaseWithoutFee", []Capability{Sender}, testReleaseNoFee},
	{"OtherDepositsStayWhereTheyAre", []Capability{Sender}, testReleaseOnlyItsOwn},
	{"TokenReleaseBalances", []Capability{Sender, Tokens}, testReleaseToken},
	{"ResidueSavesATopUp", []Capability{Tokens}, testReleaseResidue},
	{"ConfirmedStepsAreDone", nil, testReleaseDone},
	{"PlanningChangesNothing", nil, testReleasePlanTwice},
	{"AccountsStayOpenWhenAsked", nil, testReleaseKeepOpen},
	{"SmallNativeDepositIsUneconomic", nil, testReleaseUneconomic},
	{"UnmovableDepositIsInvalid", nil, testReleaseImpossible},
}

// newRelease pays a deposit and returns its release.
func (e *env) newRelease(a chain.Asset, sum, fee chain.Amount) chain.Release {
	e.t.Helper()
	deposit := e.party(chain.RoleDeposit)
	e.pay(deposit.Address, a, sum)
	e.mine(1)

	r := chain.Release{
		Asset:      a,
		Deposit:    deposit,
		Master:     e.wallet(a),
		FeeAddress: e.newAddress(),
		Amount:     sum,
		Fee:        fee,
	}
	if e.has(CoinSource) {
		coins, err := e.Network.(CoinLister).Coins(e.ctx, deposit)
		e.must("CoinLister.Coins", err)

		r.Coins = coins
	}

	return r
}

func (e *env) plan(r chain.Release) []chain.ReleaseStep {
	e.t.Helper()
	steps, err := as[chain.Sweeper](e).PlanRelease(e.ctx, r)
	e.must("PlanRelease", err)

	order := []chain.StepKind{chain.StepTopUp, chain.StepFee, chain.StepSweep}
	last := -1

	for _, s := range steps {
		at := slices.Index(order, s.Kind)
		if at <= last {
			e.t.Fatalf("the plan %v is out of order", stepKinds(steps))
		}

		last = at

		if s.NetworkFee.IsZero() || s.Order.MaxFee.Less(s.NetworkFee) {
			e.t.Fatalf("the %s is to cost %s and may cost %s", s.Kind, s.NetworkFee, s.Order.MaxFee)
		}

		if slices.Contains(r.Done, s.Kind) {
			e.t.Fatalf("the %s is planned again though it is done", s.Kind)
		}
	}

	if len(steps) > 0 && steps[len(steps)-1].Kind != chain.StepSweep {
		e.t.Fatalf("the plan %v does not end in a sweep", stepKinds(steps))
	}

	return steps
}

func stepKinds(steps []chain.ReleaseStep) []chain.StepKind {
	out := make([]chain.StepKind, 0, len(steps))
	for _, s := range steps {
		out = append(out, s.Kind)
	}

	return out
}

// releaseResult sums up what the transactions of a release did.
type releaseResult struct {
	steps       []chain.StepKind
	depositFees chain.Amount // network fees that the deposit's address paid
	masterFees  chain.Amount // network fees that the master wallet paid
	topUp       chain.Amount
	feePaid     chain.Amount
}

// runRelease runs a release to its end as the sender does: one step, confirmed, then the plan anew.
func (e *env) runRelease(r chain.Release) releaseResult {
	e.t.Helper()

	var p releaseResult
	for len(p.steps) < 4 {
		steps := e.plan(r)
		if len(steps) == 0 {
			return p
		}

		step := steps[0]

		st := e.include(e.sign(e.complete(step.Order)))
		if st.Reverted {
			e.t.Fatalf("the %s failed", step.Kind)
		}

		payer := step.Order.From.Address
		if step.Order.FeePayer != nil {
			payer = step.Order.FeePayer.Address
		}

		if payer == r.Deposit.Address {
			p.depositFees = p.depositFees.Add(st.Fee)
			r.Spent = r.Spent.Add(st.Fee)
		} else {
			p.masterFees = p.masterFees.Add(st.Fee)
		}

		for _, out := range step.Order.Outputs {
			if out.AssetID == e.native.ID && step.Kind == chain.StepTopUp {
				p.topUp = p.topUp.Add(out.Amount)
			}

			if out.AssetID == e.native.ID && step.Kind == chain.StepFee && step.Order.From == r.Deposit {
				r.Spent = r.Spent.Add(out.Amount)
			}
		}

		p.feePaid = p.feePaid.Add(step.PaysFee)
		p.steps = append(p.steps, step.Kind)
		r.Done = append(r.Done, step.Kind)
	}

	e.t.Fatalf("the release does not end: it took %v", p.steps)

	return p
}

func (e *env) gain(of chain.Party, a chain.Asset, before chain.Amount) chain.Amount {
	e.t.Helper()

	after := e.balance(of, a)
	if after.Less(before) {
		e.t.Fatalf("%s has %s %s, less than the %s before", of.Address, after, a.Symbol, before)
	}

	return after.Sub(before)
}

// platformFee returns a fee of half a percent of what a release moves, in base units.
func (e *env) platformFee() chain.Amount { return amount(e.native).Mul(100).BPS(50) }

func testReleaseNative(e *env) { e.runNativeRelease(e.platformFee()) }

func testReleaseNoFee(e *env) {
	if p := e.runNativeRelease(chain.Amount{}); slices.Contains(p.steps, chain.StepFee) {
		e.t.Errorf("a release without a fee took %v", p.steps)
	}
}

func (e *env) runNativeRelease(fee chain.Amount) releaseResult {
	e.t.Helper()
	gross := amount(e.native).Mul(100).Add(chain.Units(3))
	r := e.newRelease(e.native, gross, fee)
	before := e.balance(r.Master, e.native)
	p := e.runRelease(r)
	swept := e.gain(r.Master, e.native, before)

	got := e.balance(chain.Party{Address: r.FeeAddress}, e.native)
	if got != fee || p.feePaid != fee {
		e.t.Errorf("the fee address received %s and the steps say %s, want %s", got, p.feePaid, fee)
	}

	if sum := swept.Add(got).Add(p.depositFees); sum != gross || !p.masterFees.IsZero() {
		e.t.Errorf(
			"gross %s, but swept %s + fee %s + network fees %s = %s (the master paid %s)",
			gross, swept, got, p.depositFees, sum, p.masterFees,
		)
	}

	if left := e.balance(r.Deposit, e.native); !left.IsZero() {
		e.t.Errorf("%s is left at the deposit address", left)
	}

	return p
}

func testReleaseOnlyItsOwn(e *env) {
	gross := amount(e.native).Mul(50)
	r := e.newRelease(e.native, gross, e.platformFee())
	other := amount(e.native).Mul(7)
	e.pay(r.Deposit.Address, e.native, other)
	e.mine(1)
	e.runRelease(r)

	if left := e.balance(r.Deposit, e.native); left != other {
		e.t.Errorf("%s is left of a deposit of %s that was not to be released", left, other)
	}
}

func testReleaseToken(e *env) {
	token, _ := e.token()
	gross, fee := amount(token).Mul(20), e.platformFee()
	r := e.newRelease(token, gross, fee)
	tokens, coins := e.balance(r.Master, token), e.balance(r.Master, e.native)

	p := e.runRelease(r)
	if got := e.gain(r.Master, token, tokens); got != gross {
		e.t.Errorf("%s %s arrived at the master wallet, want %s", got, token.Symbol, gross)
	}

	if got := e.balance(chain.Party{Address: r.FeeAddress}, e.native); got != fee || p.feePaid != fee {
		e.t.Errorf("the fee address received %s and the steps say %s, want %s", got, p.feePaid, fee)
	}

	if left := e.balance(r.Deposit, token); !left.IsZero() {
		e.t.Errorf("%s %s is left at the deposit address", left, token.Symbol)
	}

	// What the master paid is at the fee address, at the deposit address, or with the network.
	residue := e.balance(r.Deposit, e.native)
	if want := fee.Add(p.topUp).Add(p.masterFees); coins.Sub(e.balance(r.Master, e.native)) != want {
		e.t.Errorf("the master wallet lost %s, but fee %s + top-up %s + network fees %s = %s",
			coins.Sub(e.balance(r.Master, e.native)), fee, p.topUp, p.masterFees, want)
	}

	if residue.Add(p.depositFees) != p.topUp {
		e.t.Errorf("a top-up of %s, of which the sweep took %s, leaves %s", p.topUp, p.depositFees, residue)
	}
}

func topUpAmount(steps []chain.ReleaseStep) chain.Amount {
	for _, s := range steps {
		if s.Kind == chain.StepTopUp {
			return s.Order.Outputs[0].Amount
		}
	}

	return chain.Amount{}
}

func testReleaseResidue(e *env) {
	token, _ := e.token()
	r := e.newRelease(token, amount(token), e.platformFee())

	whole := topUpAmount(e.plan(r))
	if whole.IsZero() {
		return // a network without top-ups, such as one where somebody else can pay the fee
	}

	// A native deposit at the same address pays no gas.
	e.pay(r.Deposit.Address, e.native, amount(e.native))
	e.mine(1)

	if got := topUpAmount(e.plan(r)); got != whole {
		e.t.Errorf("the top-up is %s beside a native deposit, without it %s", got, whole)
	}

	residue := whole.Share(chain.Units(1), chain.Units(3))

	r.Residue = residue
	if got := topUpAmount(e.plan(r)); got != whole.Sub(residue) {
		e.t.Errorf("with a residue of %s the top-up is %s, want %s", residue, got, whole.Sub(residue))
	}

	r.Residue = whole
	if steps := e.plan(r); !topUpAmount(steps).IsZero() {
		e.t.Errorf("with a residue that covers the gas the plan is %v", stepKinds(steps))
	}
}

func testReleaseDone(e *env) {
	for _, a := range e.assets() {
		r := e.newRelease(a, amount(a).Mul(100), e.platformFee())
		for len(e.plan(r)) > 0 {
			first := e.plan(r)[0]

			r.Done = append(r.Done, first.Kind) // plan fails the test when a step comes back
			if first.Kind == chain.StepTopUp {
				given := topUpAmount([]chain.ReleaseStep{first})
				e.payTopUp(r, given)
				recorded := r // whether or not the top-up is recorded as residue by now
				recorded.Residue = given
				e.plan(recorded)
			}
		}

		if !slices.Contains(r.Done, chain.StepSweep) {
			e.t.Errorf("the plan of a %s release ended after %v", a.Symbol, r.Done)
		}
	}
}

// payTopUp pays the deposit address as a top-up does.
func (e *env) payTopUp(r chain.Release, amount chain.Amount) {
	e.t.Helper()
	e.pay(r.Deposit.Address, e.native, amount)
	e.mine(1)
}

func testReleasePlanTwice(e *env) {
	for _, a := range e.assets() {
		r := e.newRelease(a, amount(a).Mul(100), e.platformFee())
		deposit, master := e.balance(r.Deposit, a), e.balance(r.Master, e.native)

		first, second := e.plan(r), e.plan(r)
		if !reflect.DeepEqual(first, second) {
			e.t.Errorf("the plan was %+v, then %+v", first, second)
		}

		e.mine(1)

		if e.balance(r.Deposit, a) != deposit || e.balance(r.Master, e.native) != master {
			e.t.Error("planning moved coins")
		}
	}
}

func testReleaseKeepOpen(e *env) {
	for _, a := range e.assets() {
		r := e.newRelease(a, amount(a).Mul(100), e.platformFee())

		r.KeepOpen = true
		for _, s := range e.plan(r) {
			if s.Order.Close {
				e.t.Errorf("the %s of %s closes an account that is to stay open", s.Kind, a.Symbol)
			}
		}
	}
}

func testReleaseUneconomic(e *env) {
	r := e.newRelease(e.native, amount(e.native), chain.Amount{})
	steps := e.plan(r)

	r.Amount = steps[len(steps)-1].NetworkFee.Share(chain.Units(1), chain.Units(2))
	if len(r.Coins) > 0 {
		r.Coins[0].Amount = r.Amount
	}

	steps, err := as[chain.Sweeper](e).PlanRelease(e.ctx, r)
	e.expectFault("PlanRelease of a deposit smaller than its fees", err, fault.State, "uneconomic")

	if len(steps) != 0 {
		e.t.Errorf("the plan is %v beside its error", stepKinds(steps))
	}
}

func testReleaseImpossible(e *env) {
	r := e.newRelease(e.native, amount(e.native), chain.Amount{})
	r.Asset.ID, r.Asset.Symbol, r.Asset.Contract = "000000000000000000000000", "NONE", "none"
	steps, err := as[chain.Sweeper](e).PlanRelease(e.ctx, r)
	e.expectFault("PlanRelease of an unknown asset", err, fault.Invalid, "not_releasable")

	if len(steps) != 0 {
		e.t.Errorf("the plan is %v beside its error", stepKinds(steps))
	}
}
