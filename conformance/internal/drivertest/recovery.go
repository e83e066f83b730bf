package drivertest

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

var strayTests = []testCase{
	{"StraysAreListed", nil, testStraysListed},
}

var recoveryTests = []testCase{
	{"StraysReachTheMasterWallet", nil, testRecovery},
	{"BytesPayTheRecovery", []Capability{Decoder}, testRecoveryDecode},
	{"WhatIsGoneIsUnknown", nil, testRecoveryUnknown},
}

// strayUnits is what the suite pays where no balance shows it, in base units.
const strayUnits = 500_000

// payStray pays what no balance shows to an address, and returns its account.
func (e *env) payStray(to chain.Address) chain.Address {
	e.t.Helper()

	payer, ok := e.Network.(control.StrayPayer)
	if !ok {
		e.t.Fatal("a driver that lists strays needs a control.StrayPayer among the controls")
	}

	account, err := payer.PayStray(e.ctx, to, chain.Units(strayUnits))
	e.must("StrayPayer.PayStray", err)
	e.mine(1)

	return account
}

func (e *env) strays(addresses ...chain.Address) []chain.Stray {
	e.t.Helper()
	strays, err := as[chain.StrayLister](e).Strays(e.ctx, addresses)
	e.must("Strays", err)

	return strays
}

// newRecovery returns the request for a stray at a deposit address that has all assets besides.
func (e *env) newRecovery() chain.RecoveryRequest {
	e.t.Helper()

	deposit := e.party(chain.RoleDeposit)
	for _, asset := range e.assets() {
		e.fund(deposit, asset, amount(asset))
	}

	account := e.payStray(deposit.Address)

	strays := e.strays(deposit.Address)
	if len(strays) != 1 || strays[0].Account != account {
		e.t.Fatalf("Strays is %+v, want what %s holds", strays, account)
	}

	return chain.RecoveryRequest{Stray: strays[0], Owner: deposit, Master: e.wallet(e.native)}
}

func (e *env) planRecovery(r chain.RecoveryRequest) chain.Order {
	e.t.Helper()
	order, err := as[chain.Recoverer](e).PlanRecovery(e.ctx, r)
	e.must("PlanRecovery", err)

	return order
}

func testStraysListed(e *env) {
	first, second, none := e.newAddress(), e.newAddress(), e.newAddress()
	for _, asset := range e.assets() {
		e.must("Base.Fund", e.Network.Fund(e.ctx, first, asset, amount(asset)))
	}

	if strays := e.strays(first, second, none); len(strays) > 0 {
		e.t.Errorf("balances are listed as strays: %+v", strays)
	}

	owners := map[chain.Address]chain.Address{}
	for _, owner := range []chain.Address{first, second, first} {
		owners[e.payStray(owner)] = owner
	}

	strays := e.strays(second, none, first)
	for _, stray := range strays {
		if owners[stray.Account] != stray.Address || stray.Amount != chain.Units(strayUnits) ||
			stray.AssetID != chain.AssetID(e.network.CAIP2, stray.Contract) {
			e.t.Errorf("listed is %+v, paid was %d to %s", stray, strayUnits, owners[stray.Account])
		}
	}

	if len(strays) != len(owners) || !slices.IsSortedFunc(strays, compareStrays) {
		e.t.Errorf("Strays is %+v, want those at %v by address and account", strays, owners)
	}
}

func compareStrays(a, b chain.Stray) int {
	return slices.Compare([]chain.Address{a.Address, a.Account}, []chain.Address{b.Address, b.Account})
}

func testRecovery(e *env) {
	r := e.newRecovery()
	before := e.balance(r.Master, e.native)

	order := e.planRecovery(r)
	if again := e.planRecovery(r); !slices.Equal(again.Outputs, order.Outputs) {
		e.t.Errorf("planned is %+v, and then %+v", order.Outputs, again.Outputs)
	}

	if len(order.Outputs) != 1 || order.Outputs[0].To != r.Master.Address || order.Recovers == nil {
		e.t.Fatalf("the order is %+v, want one output to the master wallet", order)
	}

	st := e.include(e.sign(order))
	if st.Reverted || order.MaxFee.Less(st.Fee) {
		e.t.Errorf("the recovery is %+v, for at most %s", st, order.MaxFee)
	}

	arrived := chain.Amount{}
	if order.Outputs[0].AssetID == e.native.ID {
		arrived = order.Outputs[0].Amount
	}

	if got, want := e.balance(r.Master, e.native), before.Add(arrived).Sub(st.Fee); got != want {
		e.t.Errorf(
			"the master wallet has %s of the native coin, want %s: it pays the fee of %s",
			got,
			want,
			st.Fee,
		)
	}

	for _, asset := range e.assets() {
		if got := e.balance(r.Owner, asset); got != amount(asset) {
			e.t.Errorf("the owner has %s %s left of %s", got, asset.Symbol, amount(asset))
		}
	}

	if left := e.strays(r.Owner.Address); len(left) > 0 {
		e.t.Errorf("left is %+v", left)
	}

	_, err := as[chain.Recoverer](e).PlanRecovery(e.ctx, r)
	e.expectFault("PlanRecovery of what was recovered", err, fault.NotFound, "stray_unknown")
}

func testRecoveryDecode(e *env) {
	r := e.newRecovery()
	unsigned := e.build(e.planRecovery(r))

	decoded, err := as[chain.Decoder](e).Decode(unsigned.Raw)
	e.must("Decode", err)

	request := chain.SignRequest{
		Network:  e.network.Slug,
		Unsigned: unsigned.Raw,
		Payloads: unsigned.Payloads,
		Intent:   chain.Intent{Outputs: unsigned.Outputs, MaxFee: unsigned.MaxFee},
	}

	// Not even to those that sign does it pay anything but its output.
	if err := chaindata.CheckDecoded(decoded, request, nil); err != nil {
		e.t.Errorf("%v; it decodes to %+v", err, decoded)
	}
}

func testRecoveryUnknown(e *env) {
	r := e.newRecovery()
	r.Stray.Account = e.newAddress()

	_, err := as[chain.Recoverer](e).PlanRecovery(e.ctx, r)
	e.expectFault("PlanRecovery of an account that is none", err, fault.NotFound, "stray_unknown")
}
