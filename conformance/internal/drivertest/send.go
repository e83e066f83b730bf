package drivertest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/fault"
)

var senderTests = []testCase{
	{"LifeOfATransaction", nil, testSendLife},
	{"SubtractFeeIsExact", nil, testSendSubtractFee},
	{"NothingIsKnownBeforeBroadcast", nil, testSendUnknown},
	{"SameBytesTwice", nil, testSendTwice},
	{"MalformedBytesAreInvalid", nil, testSendMalformed},
	{"UnfundedBytesAreInvalid", []Capability{Nonces}, testSendUnfunded},
	{"NonceIsTheOrders", []Capability{Nonces}, testSendNonce},
	{"ForkTakesTheBlockAway", []Capability{Forking}, testSendFork},
	{"FailedExecutionIsReverted", []Capability{Freezing, Tokens}, testSendReverted},
	{"ExpiredIsDeadAtFinality", []Capability{Expiry}, testExpiry},
	{"IncludedIsInItsBlock", []Capability{BlockScanner, Forking}, testSendInBlock},
	{"DenialIsNoDeath", []Capability{LyingNodes}, testSendDenied},
	{"ReceiptWithoutLogsIsNotTaken", []Capability{LyingNodes}, testSendHiddenLogs},
	{"EstimateCoversWhatIsTaken", []Capability{FeeEstimator}, testSendEstimate},
	{"UnspentFollowsTheBlocks", []Capability{CoinSource}, testUnspent},
}

func testUnspent(e *env) {
	reader := as[chain.CoinReader](e)
	amounts := func(outpoints ...chain.Outpoint) []chain.Amount {
		e.t.Helper()
		at, got, err := reader.Unspent(e.ctx, outpoints)
		e.must("Unspent", err)

		if tip := e.head().Tip; at.Hash != tip.Hash || len(got) != len(outpoints) {
			e.t.Fatalf(
				"Unspent of %d outputs at block %d (%s) returned %d amounts of block %d (%s)",
				len(outpoints), tip.Height, tip.Hash, len(got), at.Height, at.Hash,
			)
		}

		return got
	}
	from := e.wallet(e.native)
	coins, err := e.Network.(control.CoinLister).Coins(e.ctx, from)
	e.must("CoinLister.Coins", err)

	unknown := chain.Outpoint{TxHash: strings.Repeat("ab", 32)}
	if got := amounts(unknown, coins[0].Outpoint); !got[0].IsZero() || got[1] != coins[0].Amount {
		e.t.Fatalf("an unknown output has %s and a coin of %s has %s", got[0], coins[0].Amount, got[1])
	}

	order := e.order(from, e.native, e.newAddress(), amount(e.native))
	order.Coins = coins[:1]
	tx := e.sign(order)
	made := chain.Outpoint{TxHash: tx.TxHash}
	e.broadcast(tx)

	if got := amounts(made, coins[0].Outpoint); !got[0].IsZero() || got[1] != coins[0].Amount {
		e.t.Errorf(
			"with its transaction in the pool, an output has %s and the coin that it spends %s; the pool "+
				"does not count",
			got[0],
			got[1],
		)
	}

	e.include(tx)

	if got := amounts(coins[0].Outpoint, made); !got[0].IsZero() || got[1] != amount(e.native) {
		e.t.Errorf(
			"with its transaction in a block, the coin that it spends has %s and an output of %s has %s",
			got[0], amount(e.native), got[1],
		)
	}
}

func testSendLife(e *env) {
	for _, asset := range e.assets() {
		from := e.wallet(asset)
		to := e.newAddress()
		assetBefore, nativeBefore := e.balance(from, asset), e.balance(from, e.native)
		order := e.order(from, asset, to, amount(asset))

		tx := e.sign(order)
		if want := order.Outputs; !slices.Equal(tx.Outputs, want) {
			e.t.Errorf("outputs %+v, the order has %+v", tx.Outputs, want)
		}

		e.broadcast(tx)
		e.waitState(tx, chain.TxPooled)
		e.mine(1)
		st := e.waitState(tx, chain.TxIncluded)
		e.expectIncluded(tx, st)
		e.expectTransfer(
			"Status.Transfers",
			filterTransfers(st.Transfers, to), tx.TxHash, to, asset, amount(asset),
		)

		if st.Reverted {
			e.t.Error("the transaction is said to have failed")
		}

		if got := e.balance(chain.Party{Address: to}, asset); got != amount(asset) {
			e.t.Errorf("%s %s arrived, want %s", got, asset.Symbol, amount(asset))
		}

		spent := nativeBefore.Sub(e.balance(from, e.native))

		want := st.Fee
		if asset.Kind == chain.Native {
			want = want.Add(amount(asset))
		} else if got := assetBefore.Sub(e.balance(from, asset)); got != amount(asset) {
			e.t.Errorf("the sender lost %s %s, want %s", got, asset.Symbol, amount(asset))
		}

		if spent != want {
			e.t.Errorf("the sender lost %s of the native coin, but amount and fee are %s", spent, want)
		}

		final := e.finalize(tx)
		if final.Block.Hash != st.Block.Hash || final.Fee != st.Fee || final.Reason != "" {
			e.t.Errorf("the status was %+v and is %+v at finality", st, final)
		}
	}
}

func testSendSubtractFee(e *env) {
	from, to := e.party(chain.RoleDeposit), e.newAddress()
	sum := amount(e.native).Add(chain.Units(7))
	e.fund(from, e.native, sum)
	order := e.complete(chain.Order{
		From:        from,
		Outputs:     []chain.Output{{To: to, AssetID: e.native.ID, Amount: sum}},
		SubtractFee: true,
	})

	tx := e.sign(order)
	if len(tx.Outputs) != 1 || tx.Outputs[0].To != to || !tx.Outputs[0].Amount.Less(sum) {
		e.t.Fatalf("outputs %+v, want one to %s of %s less the fee", tx.Outputs, to, sum)
	}

	st := e.include(tx)
	e.expectIncluded(tx, st)

	arrived := e.balance(chain.Party{Address: to}, e.native)
	if arrived != tx.Outputs[0].Amount {
		e.t.Errorf("%s arrived, Signed.Outputs promises %s", arrived, tx.Outputs[0].Amount)
	}

	if got := arrived.Add(st.Fee); got != sum {
		e.t.Errorf("%s arrived and the fee is %s: together %s, want exactly %s", arrived, st.Fee, got, sum)
	}

	if left := e.balance(from, e.native); !left.IsZero() {
		e.t.Errorf("%s is left at the emptied address", left)
	}
}

func testSendUnknown(e *env) {
	tx := e.sign(e.order(e.wallet(), e.native, e.newAddress(), amount(e.native)))
	if st := e.status(tx); st.State != chain.TxUnknown || st.Final || !st.Block.IsZero() || st.Reason != "" {
		e.t.Errorf("a transaction that was never sent is %+v, want unknown", st)
	}

	e.mine(3)

	if st := e.status(tx); st.State != chain.TxUnknown && st.Reason != chain.ReasonExpired {
		e.t.Errorf("a transaction that was never sent is %+v three blocks later", st)
	}
}

func testSendTwice(e *env) {
	from, to := e.wallet(), e.newAddress()
	tx := e.sign(e.order(from, e.native, to, amount(e.native)))
	e.broadcast(tx)
	e.waitState(tx, chain.TxPooled)
	e.must("Broadcast of bytes that wait in the pool", e.sender().Broadcast(e.ctx, tx))
	e.mine(1)
	e.waitState(tx, chain.TxIncluded)
	e.must("Broadcast of bytes that are in a block", e.sender().Broadcast(e.ctx, tx))
	e.mine(1)

	if got := e.balance(chain.Party{Address: to}, e.native); got != amount(e.native) {
		e.t.Errorf("%s arrived after sending the same bytes three times, want %s once", got, amount(e.native))
	}
}

func testSendMalformed(e *env) {
	tx := e.sign(e.order(e.wallet(), e.native, e.newAddress(), amount(e.native)))
	cut, changed := tx, tx
	cut.Raw = tx.Raw[:len(tx.Raw)-3]
	changed.Raw = slices.Clone(tx.Raw)

	changed.Raw[0] ^= 0x55
	for name, bad := range map[string]chain.Signed{"cut": cut, "changed": changed} {
		e.expectFault("Broadcast of "+name+" bytes", e.sender().Broadcast(e.ctx, bad), fault.Invalid, "")
	}

	if st := e.status(tx); st.State != chain.TxUnknown {
		e.t.Errorf("after malformed bytes were refused the transaction is %s", st.State)
	}
}

func testSendUnfunded(e *env) {
	from := e.party(chain.RoleMaster)
	e.fund(from, e.native, amount(e.native).Mul(4))
	first := e.order(from, e.native, e.newAddress(), amount(e.native).Mul(3))
	second := first
	second.Nonce++

	one, two := e.sign(first), e.sign(second)
	e.include(one)
	e.expectFault(
		"Broadcast of a transaction whose money is gone",
		e.sender().Broadcast(e.ctx, two), fault.Invalid, "",
	)
}

func testSendNonce(e *env) {
	nonces := as[chain.Nonces](e)
	from := e.wallet()
	before, err := nonces.Nonce(e.ctx, from.Address)
	e.must("Nonce", err)

	if before != 0 {
		e.t.Fatalf("the nonce of an address that never sent is %d", before)
	}

	order := e.order(from, e.native, e.newAddress(), amount(e.native))
	order.Nonce = 1
	later := e.sign(order)
	order.Nonce = 0

	first := e.sign(order)
	if later.Nonce != 1 || first.Nonce != 0 {
		e.t.Fatalf(
			"the orders' nonces were 1 and 0, the transactions have %d and %d",
			later.Nonce, first.Nonce,
		)
	}

	e.broadcast(first)
	e.waitState(first, chain.TxPooled)

	if got, err := nonces.Nonce(e.ctx, from.Address); err != nil || got != 0 {
		e.t.Errorf("Nonce = %d, %v while the first transaction waits: only blocks count", got, err)
	}

	e.broadcast(later)
	e.mine(1)
	e.waitState(first, chain.TxIncluded)
	e.waitState(later, chain.TxIncluded)

	if got, err := nonces.Nonce(e.ctx, from.Address); err != nil || got != 2 {
		e.t.Errorf("Nonce = %d, %v after two transactions", got, err)
	}
}

func testSendFork(e *env) {
	from, to := e.wallet(), e.newAddress()
	e.mine(2)
	tx := e.sign(e.order(from, e.native, to, amount(e.native)))
	first := e.include(tx)
	e.fork(1)
	e.eventually("a transaction out of its block", func() error {
		switch st := e.status(tx); st.State {
		case chain.TxUnknown, chain.TxPooled:
			return nil
		default:
			return fmt.Errorf("it is %+v", st)
		}
	})

	second := e.include(tx)
	if second.Block.Hash == first.Block.Hash {
		e.t.Errorf("the transaction is in the block %s that left the chain", first.Block.Hash)
	}

	if got := e.balance(chain.Party{Address: to}, e.native); got != amount(e.native) {
		e.t.Errorf("%s arrived after the fork, want %s once", got, amount(e.native))
	}

	st := e.status(tx)
	e.fork(1, tx.TxHash)

	kept := e.waitState(tx, chain.TxIncluded)
	if kept.Block.Hash == st.Block.Hash {
		e.t.Errorf("after a fork that kept it the transaction is still in block %s", st.Block.Hash)
	}

	e.expectIncluded(tx, kept)
}

func testSendReverted(e *env) {
	token, _ := e.token()
	from, to := e.wallet(token), e.newAddress()
	tokens, coins := e.balance(from, token), e.balance(from, e.native)
	tx := e.sign(e.order(from, token, to, amount(token)))
	e.must("Freezer.Freeze", e.Network.(control.Freezer).Freeze(e.ctx, to, token))
	e.settle()
	coins = e.expectUnchanged(from, coins)

	st := e.include(tx)
	if !st.Reverted || len(st.Transfers) != 0 {
		e.t.Errorf("a transaction that failed is %+v, want Reverted and no transfers", st)
	}

	e.expectIncluded(tx, st)

	if got := e.balance(from, token); got != tokens {
		e.t.Errorf("the sender has %s %s after a failed transfer, want all of %s", got, token.Symbol, tokens)
	}

	if got := coins.Sub(e.balance(from, e.native)); got != st.Fee {
		e.t.Errorf("the sender lost %s of the native coin, want the fee of %s", got, st.Fee)
	}

	if st = e.finalize(tx); !st.Reverted {
		e.t.Errorf("at finality the failed transaction is %+v", st)
	}
}

func testSendEstimate(e *env) {
	for _, asset := range e.assets() {
		from := e.wallet(asset)
		order := e.order(from, asset, e.newAddress(), amount(asset)) // MaxFee is the estimate

		tx := e.sign(order)
		if order.MaxFee.Cmp(tx.MaxFee) <= 0 {
			e.t.Errorf(
				"the estimate for %s is %s and the first transaction may cost %s: no room for a replacement",
				asset.Symbol, order.MaxFee, tx.MaxFee,
			)
		}

		if st := e.include(tx); order.MaxFee.Less(st.Fee) {
			e.t.Errorf("the estimate for %s was %s, taken were %s", asset.Symbol, order.MaxFee, st.Fee)
		}
	}
}
