package drivertest

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var feeCheckTests = []testCase{
	{"CurrentFeePaysEnough", nil, testPaysEnough},
	{"WhatItRestsOnCounts", []Capability{CheapPayments, Mempool, CoinSource}, testPaysForParents},
}

var pricerTests = []testCase{
	{"InputsAreWhatTheyAdd", []Capability{Sender}, testInputFees},
	{"UnspendableInputIsInvalid", nil, testInputFeesRefuse},
}

var namedCoinTests = []testCase{
	{"NamedCoinsAreSpent", nil, testNamedCoins},
	{"MissingNamedCoinIsInvalid", nil, testNamedCoinMissing},
}

func (e *env) paysEnough(tx chain.Signed) bool {
	e.t.Helper()
	enough, err := as[chain.FeeChecker](e).PaysEnough(e.ctx, tx)
	e.must("PaysEnough", err)

	return enough
}

func testPaysEnough(e *env) {
	tx := e.sign(e.order(e.wallet(), e.native, e.newAddress(), amount(e.native)))
	e.broadcast(tx)
	e.waitState(tx, chain.TxPooled)

	if !e.paysEnough(tx) {
		e.t.Error("a transaction that was just built does not pay enough")
	}
}

// testPaysForParents spends a waiting payment below the current fee: alone the transaction would pay enough.
func testPaysForParents(e *env) {
	coin := e.lowFeeCoin()
	output := chain.Output{
		To:      e.newAddress(),
		AssetID: e.native.ID,
		Amount:  coin.Amount.Share(chain.Units(1), chain.Units(2)),
	}

	tx := e.sign(e.complete(chain.Order{
		From:    coin.Owner,
		Outputs: []chain.Output{output},
		Coins:   []chain.Coin{coin},
	}))
	e.broadcast(tx)
	e.waitState(tx, chain.TxPooled)

	if e.paysEnough(tx) {
		e.t.Error("a transaction pays enough that rests on one which does not")
	}
}

func (e *env) inputFees(coins []chain.Coin) []chain.Amount {
	e.t.Helper()
	fees, err := as[chain.InputPricer](e).InputFees(e.ctx, coins)
	e.must("InputFees", err)

	if len(fees) != len(coins) {
		e.t.Fatalf("%d coins have %d prices", len(coins), len(fees))
	}

	return fees
}

// twoCoins returns a wallet with two coins.
func (e *env) twoCoins() (chain.Party, []chain.Coin) {
	e.t.Helper()
	from := e.wallet()
	e.fund(from, e.native, amount(e.native).Mul(50))

	coins := e.coinsOf(from)
	if len(coins) != 2 {
		e.t.Fatalf("the wallet has %d coins, want 2", len(coins))
	}

	return from, coins
}

// testInputFees compares a transaction of one coin with one of two. Sizes are whole: a twentieth is tolerated.
func testInputFees(e *env) {
	from, coins := e.twoCoins()
	fees := e.inputFees(coins)
	cost := func(coins []chain.Coin) (sum, fee chain.Amount) {
		for _, c := range coins {
			sum = sum.Add(c.Amount)
		}

		order := chain.Order{
			From:        from,
			Outputs:     []chain.Output{{To: e.newAddress(), AssetID: e.native.ID, Amount: sum}},
			SubtractFee: true,
			Coins:       coins,
		}

		return sum, e.build(e.complete(order)).MaxFee
	}

	_, one := cost(coins[:1])
	_, both := cost(coins)
	added := both.Sub(one)

	if tolerated := added.Share(chain.Units(1), chain.Units(20)); fees[1].Add(tolerated).Less(added) ||
		added.Add(tolerated).Less(fees[1]) {
		e.t.Errorf("the second coin is priced %s and adds %s", fees[1], added)
	}
}

func testInputFeesRefuse(e *env) {
	_, coins := e.twoCoins()
	coins[1].Owner.Address = "nobody's address"
	_, err := as[chain.InputPricer](e).InputFees(e.ctx, coins)
	e.expectFault("InputFees of a coin at no address", err, fault.Invalid, "")
}

// testNamedCoins names each of two coins in turn, of which one alone would do.
func testNamedCoins(e *env) {
	from, coins := e.twoCoins()

	for _, coin := range coins {
		order := e.order(from, e.native, e.newAddress(), amount(e.native))
		order.Spends = []chain.Outpoint{coin.Outpoint}

		if in := e.build(order).Inputs; !slices.Contains(in, coin.Outpoint) {
			e.t.Errorf("it spends %+v, and not %+v, which is named", in, coin.Outpoint)
		}
	}
}

func testNamedCoinMissing(e *env) {
	from, coins := e.twoCoins()
	order := e.order(from, e.native, e.newAddress(), amount(e.native))
	order.Coins, order.Spends = coins[:1], []chain.Outpoint{coins[1].Outpoint}
	_, err := e.sender().Build(e.ctx, order)
	e.expectFault("Build without a coin that is named", err, fault.Invalid, "")
}
