package drivertest

import (
	"reflect"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
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
func (e *env) newRelease(asset chain.Asset, sum, fee chain.Amount) chain.SweepRequest {
	e.t.Helper()
	deposit := e.party(chain.RoleDeposit)
	e.pay(deposit.Address, asset, sum)
	e.mine(1)

	release := chain.SweepRequest{
		Asset:      asset,
		Deposit:    deposit,
		Master:     e.wallet(asset),
		FeeAddress: e.newAddress(),
		Amount:     sum,
		Fee:        fee,
	}
	if e.has(CoinSource) {
		coins, err := e.Network.(control.CoinLister).Coins(e.ctx, deposit)
		e.must("CoinLister.Coins", err)

		release.Coins = coins
	}

	return release
}

func (e *env) plan(release chain.SweepRequest) []chain.SweepStep {
	e.t.Helper()
	steps, err := as[chain.Sweeper](e).PlanSweep(e.ctx, release)
	e.must("PlanSweep", err)

	order := []chain.StepKind{chain.StepTopUp, chain.StepFee, chain.StepSweep}
	last := -1

	for _, step := range steps {
		at := slices.Index(order, step.Kind)
		if at <= last {
			e.t.Fatalf("the plan %v is out of order", stepKinds(steps))
		}

		last = at

		if step.NetworkFee.IsZero() || step.Order.MaxFee.Less(step.NetworkFee) {
			e.t.Fatalf("the %s is to cost %s and may cost %s", step.Kind, step.NetworkFee, step.Order.MaxFee)
		}

		if slices.Contains(release.Done, step.Kind) {
			e.t.Fatalf("the %s is planned again though it is done", step.Kind)
		}
	}

	if len(steps) > 0 && steps[len(steps)-1].Kind != chain.StepSweep {
		e.t.Fatalf("the plan %v does not end in a sweep", stepKinds(steps))
	}

	return steps
}

func stepKinds(steps []chain.SweepStep) []chain.StepKind {
	out := make([]chain.StepKind, 0, len(steps))
	for _, step := range steps {
		out = append(out, step.Kind)
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
func (e *env) runRelease(release chain.SweepRequest) releaseResult {
	e.t.Helper()

	var result releaseResult
	for len(result.steps) < 4 {
		steps := e.plan(release)
		if len(steps) == 0 {
			return result
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

		if payer == release.Deposit.Address {
			result.depositFees = result.depositFees.Add(st.Fee)
			release.Spent = release.Spent.Add(st.Fee)
		} else {
			result.masterFees = result.masterFees.Add(st.Fee)
		}

		for _, out := range step.Order.Outputs {
			if out.AssetID == e.native.ID && step.Kind == chain.StepTopUp {
				result.topUp = result.topUp.Add(out.Amount)
			}

			if out.AssetID == e.native.ID && step.Kind == chain.StepFee &&
				step.Order.From == release.Deposit {
				release.Spent = release.Spent.Add(out.Amount)
			}
		}

		result.feePaid = result.feePaid.Add(step.PaysFee)
		result.steps = append(result.steps, step.Kind)
		release.Done = append(release.Done, step.Kind)
	}

	e.t.Fatalf("the release does not end: it took %v", result.steps)

	return result
}

func (e *env) gain(of chain.Party, asset chain.Asset, before chain.Amount) chain.Amount {
	e.t.Helper()

	after := e.balance(of, asset)
	if after.Less(before) {
		e.t.Fatalf("%s has %s %s, less than the %s before", of.Address, after, asset.Symbol, before)
	}

	return after.Sub(before)
}

// platformFee returns a fee of half a percent of what a release moves, in base units.
func (e *env) platformFee() chain.Amount { return chaindata.BPS(amount(e.native).Mul(100), 50) }

func testReleaseNative(e *env) { e.runNativeRelease(e.platformFee()) }

func testReleaseNoFee(e *env) {
	if result := e.runNativeRelease(chain.Amount{}); slices.Contains(result.steps, chain.StepFee) {
		e.t.Errorf("a release without a fee took %v", result.steps)
	}
}

func (e *env) runNativeRelease(fee chain.Amount) releaseResult {
	e.t.Helper()
	gross := amount(e.native).Mul(100).Add(chain.Units(3))
	release := e.newRelease(e.native, gross, fee)
	before := e.balance(release.Master, e.native)
	result := e.runRelease(release)
	swept := e.gain(release.Master, e.native, before)

	got := e.balance(chain.Party{Address: release.FeeAddress}, e.native)
	if got != fee || result.feePaid != fee {
		e.t.Errorf("the fee address received %s and the steps say %s, want %s", got, result.feePaid, fee)
	}

	if sum := swept.Add(got).Add(result.depositFees); sum != gross || !result.masterFees.IsZero() {
		e.t.Errorf(
			"gross %s, but swept %s + fee %s + network fees %s = %s (the master paid %s)",
			gross, swept, got, result.depositFees, sum, result.masterFees,
		)
	}

	if left := e.balance(release.Deposit, e.native); !left.IsZero() {
		e.t.Errorf("%s is left at the deposit address", left)
	}

	return result
}

func testReleaseOnlyItsOwn(e *env) {
	gross := amount(e.native).Mul(50)
	release := e.newRelease(e.native, gross, e.platformFee())
	other := amount(e.native).Mul(7)
	e.pay(release.Deposit.Address, e.native, other)
	e.mine(1)
	e.runRelease(release)

	if left := e.balance(release.Deposit, e.native); left != other {
		e.t.Errorf("%s is left of a deposit of %s that was not to be released", left, other)
	}
}

func testReleaseToken(e *env) {
	token, _ := e.token()
	gross, fee := amount(token).Mul(20), e.platformFee()
	release := e.newRelease(token, gross, fee)
	tokens, coins := e.balance(release.Master, token), e.balance(release.Master, e.native)

	result := e.runRelease(release)
	if got := e.gain(release.Master, token, tokens); got != gross {
		e.t.Errorf("%s %s arrived at the master wallet, want %s", got, token.Symbol, gross)
	}

	got := e.balance(chain.Party{Address: release.FeeAddress}, e.native)
	if got != fee || result.feePaid != fee {
		e.t.Errorf("the fee address received %s and the steps say %s, want %s", got, result.feePaid, fee)
	}

	if left := e.balance(release.Deposit, token); !left.IsZero() {
		e.t.Errorf("%s %s is left at the deposit address", left, token.Symbol)
	}

	// What the master paid is at the fee address, at the deposit address, or with the network.
	residue := e.balance(release.Deposit, e.native)
	lost, want := coins.Sub(e.balance(release.Master, e.native)), fee.Add(result.topUp).Add(result.masterFees)

	if lost != want {
		e.t.Errorf(
			"the master wallet lost %s, but fee %s + top-up %s + network fees %s = %s",
			lost, fee, result.topUp, result.masterFees, want,
		)
	}

	if residue.Add(result.depositFees) != result.topUp {
		e.t.Errorf(
			"a top-up of %s, of which the sweep took %s, leaves %s",
			result.topUp, result.depositFees, residue,
		)
	}
}

func topUpAmount(steps []chain.SweepStep) chain.Amount {
	for _, step := range steps {
		if step.Kind == chain.StepTopUp {
			return step.Order.Outputs[0].Amount
		}
	}

	return chain.Amount{}
}

func testReleaseResidue(e *env) {
	token, _ := e.token()
	release := e.newRelease(token, amount(token), e.platformFee())

	whole := topUpAmount(e.plan(release))
	if whole.IsZero() {
		return // a network without top-ups, such as one where somebody else can pay the fee
	}

	// A native deposit at the same address pays no gas.
	e.pay(release.Deposit.Address, e.native, amount(e.native))
	e.mine(1)

	if got := topUpAmount(e.plan(release)); got != whole {
		e.t.Errorf("the top-up is %s beside a native deposit, without it %s", got, whole)
	}

	residue := whole.Share(chain.Units(1), chain.Units(3))

	release.Residue = residue
	if got := topUpAmount(e.plan(release)); got != whole.Sub(residue) {
		e.t.Errorf("with a residue of %s the top-up is %s, want %s", residue, got, whole.Sub(residue))
	}

	release.Residue = whole
	if steps := e.plan(release); !topUpAmount(steps).IsZero() {
		e.t.Errorf("with a residue that covers the gas the plan is %v", stepKinds(steps))
	}
}

func testReleaseDone(e *env) {
	for _, asset := range e.assets() {
		release := e.newRelease(asset, amount(asset).Mul(100), e.platformFee())
		for len(e.plan(release)) > 0 {
			first := e.plan(release)[0]

			release.Done = append(release.Done, first.Kind) // plan fails the test when a step comes back
			if first.Kind == chain.StepTopUp {
				given := topUpAmount([]chain.SweepStep{first})
				e.payTopUp(release, given)
				recorded := release // whether or not the top-up is recorded as residue by now
				recorded.Residue = given
				e.plan(recorded)
			}
		}

		if !slices.Contains(release.Done, chain.StepSweep) {
			e.t.Errorf("the plan of a %s release ended after %v", asset.Symbol, release.Done)
		}
	}
}

// payTopUp pays the deposit address as a top-up does.
func (e *env) payTopUp(release chain.SweepRequest, amount chain.Amount) {
	e.t.Helper()
	e.pay(release.Deposit.Address, e.native, amount)
	e.mine(1)
}

func testReleasePlanTwice(e *env) {
	for _, asset := range e.assets() {
		release := e.newRelease(asset, amount(asset).Mul(100), e.platformFee())
		deposit, master := e.balance(release.Deposit, asset), e.balance(release.Master, e.native)

		first, second := e.plan(release), e.plan(release)
		if !reflect.DeepEqual(first, second) {
			e.t.Errorf("the plan was %+v, then %+v", first, second)
		}

		e.mine(1)

		if e.balance(release.Deposit, asset) != deposit || e.balance(release.Master, e.native) != master {
			e.t.Error("planning moved coins")
		}
	}
}

func testReleaseKeepOpen(e *env) {
	for _, asset := range e.assets() {
		release := e.newRelease(asset, amount(asset).Mul(100), e.platformFee())

		release.KeepOpen = true
		for _, step := range e.plan(release) {
			if step.Order.Close {
				e.t.Errorf("the %s of %s closes an account that is to stay open", step.Kind, asset.Symbol)
			}
		}
	}
}

func testReleaseUneconomic(e *env) {
	release := e.newRelease(e.native, amount(e.native), chain.Amount{})
	steps := e.plan(release)

	release.Amount = steps[len(steps)-1].NetworkFee.Share(chain.Units(1), chain.Units(2))
	if len(release.Coins) > 0 {
		release.Coins[0].Amount = release.Amount
	}

	steps, err := as[chain.Sweeper](e).PlanSweep(e.ctx, release)
	e.expectFault("PlanSweep of a deposit smaller than its fees", err, fault.State, "uneconomic")

	if len(steps) != 0 {
		e.t.Errorf("the plan is %v beside its error", stepKinds(steps))
	}
}

func testReleaseImpossible(e *env) {
	release := e.newRelease(e.native, amount(e.native), chain.Amount{})
	release.Asset.ID, release.Asset.Symbol, release.Asset.Contract = "000000000000000000000000", "NONE", "none"
	steps, err := as[chain.Sweeper](e).PlanSweep(e.ctx, release)
	e.expectFault("PlanSweep of an unknown asset", err, fault.Invalid, "not_releasable")

	if len(steps) != 0 {
		e.t.Errorf("the plan is %v beside its error", stepKinds(steps))
	}
}
