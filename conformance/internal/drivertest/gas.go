package drivertest

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/fault"
)

var gasTests = []testCase{
	{"InNoBlockIsNotFound", nil, testGasUnknown},
	{"RefusedHadGasEnough", []Capability{Freezing, Tokens}, testGasRefused},
}

var fitTests = []testCase{
	{"WhatIsBuiltFits", nil, testFits},
	{"MalformedBytesFitNowhere", nil, testFitsMalformed},
}

// testGasUnknown asks for transactions that no block reverted: one that was never sent, one that waits, and one that
// succeeded.
func testGasUnknown(e *env) {
	reader := as[chain.GasReader](e)
	tx := e.sign(e.order(e.wallet(), e.native, e.newAddress(), amount(e.native)))

	_, err := reader.RanOutOfGas(e.ctx, tx)
	e.expectFault("RanOutOfGas of what was never sent", err, fault.NotFound, "transaction_unknown")

	st := e.include(tx)
	if ranOut, err := reader.RanOutOfGas(e.ctx, tx); err != nil || ranOut || st.Reverted {
		e.t.Errorf("of a transaction that succeeded (%+v) RanOutOfGas says %t, %v", st, ranOut, err)
	}
}

// testGasRefused reverts a transaction by its contract.
func testGasRefused(e *env) {
	token, _ := e.token()
	from, to := e.wallet(token), e.newAddress()
	tx := e.sign(e.order(from, token, to, amount(token)))
	e.must("Freezer.Freeze", e.Network.(control.Freezer).Freeze(e.ctx, to, token))
	e.settle()

	st := e.include(tx)
	if ranOut, err := as[chain.GasReader](e).RanOutOfGas(e.ctx, tx); err != nil || ranOut || !st.Reverted {
		e.t.Errorf("of a transaction that a contract refused (%+v) RanOutOfGas says %t, %v", st, ranOut, err)
	}
}

// testFits asks before a transaction is sent and while it waits.
func testFits(e *env) {
	for _, asset := range e.assets() {
		tx := e.sign(e.order(e.wallet(asset), asset, e.newAddress(), amount(asset)))

		for _, when := range []string{"before it is sent", "while it waits"} {
			if fits, err := as[chain.FitChecker](e).Fits(e.ctx, tx); err != nil || !fits {
				e.t.Errorf("%s, Fits of a transaction of %s says %t, %v", when, asset.Symbol, fits, err)
			}

			e.broadcast(tx)
		}
	}
}

func testFitsMalformed(e *env) {
	tx := e.sign(e.order(e.wallet(), e.native, e.newAddress(), amount(e.native)))
	tx.Raw = tx.Raw[:len(tx.Raw)/2]

	if fits, err := as[chain.FitChecker](e).Fits(e.ctx, tx); err == nil || fits {
		e.t.Errorf("Fits of half a transaction says %t, %v", fits, err)
	}
}
