package drivertest

import (
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
)

var bumpTests = []testCase{
	{"LiftPaysForBoth", []Capability{CheapPayments}, testBump},
	{"LiftLeavesAloneWhatNeedsNone", []Capability{CheapPayments}, testNoBump},
	{"LiftThatPaysEnoughStays", []Capability{CheapPayments, Replacement}, testBumpOnce},
}

// lowFeeCoin pays an address of ours below the current fee, and waits until the pool shows it.
func (e *env) lowFeeCoin() chain.Coin {
	e.t.Helper()
	coin := chain.Coin{Owner: e.party(chain.RoleDeposit), Amount: amount(e.native)}
	hash, err := e.Network.(control.CheapPayer).PayCheap(e.ctx, coin.Owner.Address, e.native, coin.Amount)
	e.must("CheapPayer.PayCheap", err)
	e.settle()
	e.eventually("the payment in the pool", func() error {
		pool, err := as[chain.Mempool](e).Pool(e.ctx)
		if err != nil {
			return err
		}

		for _, tx := range pool {
			for _, transfer := range tx.Transfers {
				if transfer.TxHash == hash && transfer.To == coin.Owner.Address {
					coin.Outpoint = chain.Outpoint{TxHash: hash, Vout: transfer.Index}
					return nil
				}
			}
		}

		return errors.New("it is not there")
	})

	return coin
}

func (e *env) coinsOf(party chain.Party) []chain.Coin {
	e.t.Helper()
	coins, err := e.Network.(control.CoinLister).Coins(e.ctx, party)
	e.must("CoinLister.Coins", err)

	return coins
}

// bumpOrder returns the order whose transaction pays the fee of a waiting coin (CPFP).
func (e *env) bumpOrder(coin chain.Coin, wallet chain.Party) chain.Order {
	e.t.Helper()

	if _, on := as[chain.Bumper](e).BumpAfter(); !on {
		e.t.Fatal("the driver under test is configured to bump nothing: configure it to")
	}

	order, ok, err := as[chain.Bumper](e).Bump(e.ctx, coin, wallet, e.coinsOf(wallet))
	e.must("Lift", err)

	if !ok {
		e.t.Fatalf("%+v is not to be bumped", coin)
	}

	want := chain.Output{To: coin.Owner.Address, AssetID: e.native.ID, Amount: coin.Amount}

	isWhole := order.Bumps != nil && *order.Bumps == coin && len(order.Outputs) == 1 &&
		order.Outputs[0] == want
	if order.From != wallet || !isWhole || order.MaxFee.IsZero() || order.SubtractFee ||
		len(order.Coins) > 0 {
		e.t.Fatalf("the order is %+v: it has to pay the whole coin back to its owner, from the wallet", order)
	}

	return e.complete(order)
}

func testBump(e *env) {
	wallet := e.wallet()
	before := e.balance(wallet, e.native)
	coin := e.lowFeeCoin()

	tx := e.sign(e.bumpOrder(coin, wallet))
	if !slices.Contains(tx.Inputs, coin.Outpoint) {
		e.t.Fatalf("it spends %+v, and not the coin", tx.Inputs)
	}

	isParent := func(spend chain.Spend) bool { return spend.By == coin.Outpoint.TxHash }
	if !slices.ContainsFunc(tx.UnconfirmedParents, isParent) {
		e.t.Errorf("it rests on %+v: its death could not be proven", tx.UnconfirmedParents)
	}

	e.broadcast(tx)
	e.waitState(tx, chain.TxPooled)
	e.mine(1)
	st := e.waitState(tx, chain.TxIncluded)
	e.expectIncluded(tx, st)

	if got := e.balance(coin.Owner, e.native); got != coin.Amount {
		e.t.Errorf("the owner of the coin of %s holds %s", coin.Amount, got)
	}

	if got := e.balance(wallet, e.native); got != before.Sub(st.Fee) {
		e.t.Errorf("the wallet had %s, has %s, and the fee was %s", before, got, st.Fee)
	}
}

func testNoBump(e *env) {
	wallet := e.wallet()
	cheap := e.lowFeeCoin()
	refused := func(what string, coin chain.Coin, coins []chain.Coin) {
		e.t.Helper()

		order, ok, err := as[chain.Bumper](e).Bump(e.ctx, coin, wallet, coins)
		if ok || err != nil {
			e.t.Errorf("%s is to be bumped by %+v, %v", what, order, err)
		}
	}
	refused("a coin without coins of the wallet", cheap, nil)
	unknown := cheap
	unknown.Outpoint.Vout += 7
	refused("a coin that there is not", unknown, e.coinsOf(wallet))
	tx := e.sign(e.bumpOrder(cheap, wallet))
	e.broadcast(tx)
	e.waitState(tx, chain.TxPooled)
	refused("a coin that is bumped", cheap, e.coinsOf(wallet))
	e.mine(1)
	e.waitState(tx, chain.TxIncluded)
	refused("a coin in a block", cheap, e.coinsOf(wallet))
}

// testBumpOnce replaces a child that pays enough for both: it still spends the coin and pays more.
func testBumpOnce(e *env) {
	wallet := e.wallet()
	coin := e.lowFeeCoin()
	order := e.bumpOrder(coin, wallet)
	first := e.sign(order)
	e.broadcast(first)
	e.waitState(first, chain.TxPooled)

	order.Replaces = &first
	unsigned, err := e.sender().Build(e.ctx, order)

	isBump := slices.Contains(unsigned.Inputs, coin.Outpoint) && unsigned.MaxFee.Cmp(first.MaxFee) > 0
	if err == nil && !isBump {
		e.t.Errorf(
			"its replacement spends %+v and pays %s, the first one paid %s",
			unsigned.Inputs, unsigned.MaxFee, first.MaxFee,
		)
	}

	e.mine(1)
	e.waitState(first, chain.TxIncluded)
}
