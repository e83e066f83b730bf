package drivertest

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var balanceTests = []testCase{
	{"BalanceIsThatAfterTheBlock", nil, testBalanceAt},
	{"AnswersAreInTheOrderAsked", nil, testBalanceOrder},
	{"UnknownBlockIsUnavailable", nil, testBalanceUnknown},
	{"BalanceFollowsAFork", []Capability{Forking}, testBalanceFork},
}

func testBalanceAt(e *env) {
	for _, asset := range e.assets() {
		to := e.newAddress()
		e.pay(to, asset, amount(asset))

		before := e.head().Tip
		if got := e.balanceAt(before, to, asset); !got.IsZero() {
			e.t.Errorf("%s %s before the block of the payment", got, asset.Symbol)
		}

		e.mine(1)
		after, err := e.Driver.RefAt(e.ctx, before.Height+1)
		e.must("RefAt", err)

		if got := e.balanceAt(after, to, asset); got != amount(asset) {
			e.t.Errorf("%s %s after the block of the payment, want %s", got, asset.Symbol, amount(asset))
		}

		e.mine(1)

		if got := e.balanceAt(before, to, asset); !got.IsZero() {
			e.t.Errorf("%s %s at block %d when asked later, want 0", got, asset.Symbol, before.Height)
		}
	}
}

func testBalanceOrder(e *env) {
	var (
		holdings []chain.Holding
		want     []chain.Amount
	)

	for i, asset := range append(e.assets(), e.assets()...) {
		to := e.newAddress()
		sum := amount(asset).Add(chain.Units(uint64(i)))
		e.pay(to, asset, sum)
		paid := chain.Holding{Address: to, AssetID: asset.ID}
		empty := chain.Holding{Address: e.newAddress(), AssetID: asset.ID}
		holdings = append(holdings, paid, empty)
		want = append(want, sum, chain.Amount{})
	}

	e.mine(1)
	tip := e.head().Tip
	got, err := as[chain.Balancer](e).Balances(e.ctx, tip, holdings)
	e.must("Balances", err)

	if fmt.Sprint(got) != fmt.Sprint(want) {
		e.t.Errorf("Balances = %v, want %v", got, want)
	}

	none, err := as[chain.Balancer](e).Balances(e.ctx, tip, nil)
	if err != nil || len(none) != 0 {
		e.t.Errorf("Balances of nothing = %v, %v", none, err)
	}
}

func testBalanceUnknown(e *env) {
	e.mine(1)
	holding := []chain.Holding{{Address: e.newAddress(), AssetID: e.native.ID}}
	tip := e.head().Tip
	above := tip
	above.Height += 1000

	foreign := tip
	foreign.Hash = otherHash(tip.Hash)

	for _, at := range []chain.Ref{above, foreign} {
		got, err := as[chain.Balancer](e).Balances(e.ctx, at, holding)
		e.expectFault(
			fmt.Sprintf("Balances at %+v, which the node does not have", at), err,
			fault.Unavailable, "",
		)

		if len(got) != 0 {
			e.t.Errorf("Balances at an unknown block returned %v beside its error", got)
		}
	}
}

func testBalanceFork(e *env) {
	to := e.newAddress()
	e.pay(to, e.native, amount(e.native))
	e.mine(1)
	left := e.head().Tip
	e.fork(1)

	if got := e.balanceAt(e.head().Tip, to, e.native); !got.IsZero() {
		e.t.Errorf("balance %s on a branch without the payment", got)
	}

	// A node may still answer for a block that left the chain, but only with that block's state.
	holdings := []chain.Holding{{Address: to, AssetID: e.native.ID}}

	got, err := as[chain.Balancer](e).Balances(e.ctx, left, holdings)
	if err != nil {
		e.expectFault("Balances at a block that left the chain", err, fault.Unavailable, "")
	} else if len(got) != 1 || got[0] != amount(e.native) {
		e.t.Errorf(
			"Balances at block %s, which left the chain, is %v: the state of another block",
			left.Hash, got,
		)
	}
}
