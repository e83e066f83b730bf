package drivertest

// Money out: the life of one transaction, from Build to its final block.

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
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
	{"EstimateCoversWhatIsTaken", []Capability{FeeEstimator}, testSendEstimate},
	{"UnspentFollowsTheBlocks", []Capability{CoinSource}, testUnspent},
}

func (e *env) sender() chain.Sender { return as[chain.Sender](e) }

// wallet returns an address of ours that holds a hundred times the suite's amount of the native
// coin and of the given assets.
func (e *env) wallet(assets ...chain.Asset) chain.Party {
	e.t.Helper()
	p := e.party(chain.RoleMaster)
	e.fund(p, e.native, amount(e.native).Mul(100))

	for _, a := range assets {
		if a.Kind != chain.Native {
			e.fund(p, a, amount(a).Mul(100))
		}
	}

	return p
}

// order is an order to pay one destination, complete with nonce, coins and a maximum fee.
func (e *env) order(from chain.Party, a chain.Asset, to chain.Address, sum chain.Amount) chain.Order {
	e.t.Helper()
	return e.complete(chain.Order{From: from, Outputs: []chain.Output{{To: to, AssetID: a.ID, Amount: sum}}})
}

// complete fills in what chain/send fills in.
func (e *env) complete(o chain.Order) chain.Order {
	e.t.Helper()

	if e.has(Nonces) {
		nonce, err := as[chain.Nonces](e).Nonce(e.ctx, o.From.Address)
		e.must("Nonce", err)

		o.Nonce = nonce
	}

	if e.has(CoinSource) && len(o.Coins) == 0 {
		coins, err := e.Network.(CoinLister).Coins(e.ctx, o.From)
		e.must("CoinLister.Coins", err)

		o.Coins = coins
	}

	if o.MaxFee.IsZero() {
		o.MaxFee = amount(e.native)
		if e.has(FeeEstimator) {
			fee, err := as[chain.FeeEstimator](e).EstimateFee(e.ctx, o)
			e.must("EstimateFee", err)

			o.MaxFee = fee
		}
	}

	return o
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
	coins, err := e.Network.(CoinLister).Coins(e.ctx, from)
	e.must("CoinLister.Coins", err)

	unknown := chain.Outpoint{TxHash: strings.Repeat("ab", 32)}
	if got := amounts(unknown, coins[0].Outpoint); !got[0].IsZero() || got[1] != coins[0].Amount {
		e.t.Fatalf("an unknown output has %s and a coin of %s has %s", got[0], coins[0].Amount, got[1])
	}

	o := e.order(from, e.native, e.stranger(), amount(e.native))
	o.Coins = coins[:1]
	tx := e.sign(o)
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

func (e *env) build(o chain.Order) chain.Unsigned {
	e.t.Helper()
	unsigned, err := e.sender().Build(e.ctx, o)
	e.must("Build", err)

	if len(unsigned.Payloads) == 0 || len(unsigned.Raw) == 0 {
		e.t.Fatalf("Build made %+v: a transaction without bytes or payloads", unsigned)
	}

	if o.MaxFee.Less(unsigned.MaxFee) || unsigned.MaxFee.IsZero() {
		e.t.Fatalf(
			"Build made a transaction that may cost %s, the order allows %s",
			unsigned.MaxFee, o.MaxFee,
		)
	}

	return unsigned
}

// signatures signs the payloads and returns the keys that did.
func (e *env) signatures(u chain.Unsigned) ([]chain.PublicKey, [][]byte) {
	e.t.Helper()

	keys := make([]chain.PublicKey, 0, len(u.Payloads))
	for _, p := range u.Payloads {
		key, err := e.Signer.PublicKey(e.ctx, p.Key)
		e.must("Signer.PublicKey", err)

		keys = append(keys, key)
	}

	signatures, err := e.Signer.Sign(e.ctx, chain.SignRequest{
		Network:  e.network.Slug,
		Unsigned: u.Raw,
		Payloads: u.Payloads,
		Intent:   chain.Intent{Kind: "payout", Outputs: u.Outputs, MaxFee: u.MaxFee},
	})
	e.must("Signer.Sign", err)

	return keys, signatures
}

func (e *env) sign(o chain.Order) chain.Signed {
	e.t.Helper()
	unsigned := e.build(o)
	keys, signatures := e.signatures(unsigned)
	tx, err := e.sender().Assemble(o, unsigned, keys, signatures)
	e.must("Assemble", err)

	if tx.TxHash == "" || len(tx.Raw) == 0 || tx.MaxFee != unsigned.MaxFee || tx.From != o.From.Address ||
		!slices.Equal(tx.Outputs, unsigned.Outputs) || !slices.Equal(tx.Inputs, unsigned.Inputs) {
		e.t.Fatalf("Assemble made %+v of %+v", tx, unsigned)
	}

	return tx
}

func (e *env) broadcast(tx chain.Signed) {
	e.t.Helper()
	e.must("Broadcast", e.sender().Broadcast(e.ctx, tx))
	e.settle()
}

func (e *env) status(tx chain.Signed) chain.TxStatus {
	e.t.Helper()
	st, err := e.sender().Status(e.ctx, tx)
	e.must("Status", err)

	return st
}

// state waits until a transaction has a state.
func (e *env) state(tx chain.Signed, want chain.TxState) chain.TxStatus {
	e.t.Helper()

	var st chain.TxStatus

	e.eventually("a transaction that is "+string(want), func() error {
		if st = e.status(tx); st.State != want {
			return fmt.Errorf("it is %s", st.State)
		}

		return nil
	})

	return st
}

// include broadcasts a transaction and mines it.
func (e *env) include(tx chain.Signed) chain.TxStatus {
	e.t.Helper()
	e.broadcast(tx)
	e.mine(1)

	return e.state(tx, chain.TxIncluded)
}

// finalize mines until a transaction is final.
func (e *env) finalize(tx chain.Signed) chain.TxStatus {
	e.t.Helper()

	var st chain.TxStatus

	e.eventually("a final transaction", func() error {
		if st = e.status(tx); st.State != chain.TxIncluded || st.Final {
			return nil
		}

		e.mine(1)

		return errors.New("it is included, but not final")
	})

	if st.State != chain.TxIncluded {
		e.t.Fatalf("an included transaction became %+v, though nothing forked", st)
	}

	return st
}

func testSendLife(e *env) {
	for _, a := range e.assets() {
		from := e.wallet(a)
		to := e.stranger()
		assetBefore, nativeBefore := e.balance(from, a), e.balance(from, e.native)
		o := e.order(from, a, to, amount(a))

		tx := e.sign(o)
		if want := o.Outputs; !slices.Equal(tx.Outputs, want) {
			e.t.Errorf("outputs %+v, the order has %+v", tx.Outputs, want)
		}

		e.broadcast(tx)
		e.state(tx, chain.TxPooled)
		e.mine(1)
		st := e.state(tx, chain.TxIncluded)
		e.checkIncluded(tx, st)
		e.checkPayment("Status.Transfers", ours(st.Transfers, to), tx.TxHash, to, a, amount(a))

		if st.Reverted {
			e.t.Error("the transaction is said to have failed")
		}

		if got := e.balance(chain.Party{Address: to}, a); got != amount(a) {
			e.t.Errorf("%s %s arrived, want %s", got, a.Symbol, amount(a))
		}

		spent := nativeBefore.Sub(e.balance(from, e.native))

		want := st.Fee
		if a.Kind == chain.Native {
			want = want.Add(amount(a))
		} else if got := assetBefore.Sub(e.balance(from, a)); got != amount(a) {
			e.t.Errorf("the sender lost %s %s, want %s", got, a.Symbol, amount(a))
		}

		if spent != want {
			e.t.Errorf("the sender lost %s of the native coin, but amount and fee are %s", spent, want)
		}

		final := e.finalize(tx)
		if final.Block.Hash != st.Block.Hash || final.Fee != st.Fee || final.Death != "" {
			e.t.Errorf("the status was %+v and is %+v at finality", st, final)
		}

		if head := e.head(); !head.Final.IsZero() && final.Block.Height > head.Final.Height &&
			e.network.Rule != chain.RuleConfirmations {
			e.t.Errorf(
				"final in block %d, but the network's final block is %d",
				final.Block.Height, head.Final.Height,
			)
		}
	}
}

// checkIncluded checks block and fee of an included transaction.
func (e *env) checkIncluded(tx chain.Signed, st chain.TxStatus) {
	e.t.Helper()
	ref, err := e.Driver.RefAt(e.ctx, st.Block.Height)
	e.must("RefAt", err)

	if ref.Hash != st.Block.Hash {
		e.t.Errorf("included in block %+v, the canonical one is %+v", st.Block, ref)
	}

	if st.Fee.IsZero() || tx.MaxFee.Less(st.Fee) {
		e.t.Errorf("the fee is %s, the transaction allows up to %s", st.Fee, tx.MaxFee)
	}

	if st.Death != "" {
		e.t.Errorf("an included transaction died of %s", st.Death)
	}
}

func testSendSubtractFee(e *env) {
	from, to := e.party(chain.RoleDeposit), e.stranger()
	sum := amount(e.native).Add(chain.Units(7))
	e.fund(from, e.native, sum)
	o := e.complete(chain.Order{
		From:        from,
		Outputs:     []chain.Output{{To: to, AssetID: e.native.ID, Amount: sum}},
		SubtractFee: true,
	})

	tx := e.sign(o)
	if len(tx.Outputs) != 1 || tx.Outputs[0].To != to || !tx.Outputs[0].Amount.Less(sum) {
		e.t.Fatalf("outputs %+v, want one to %s of %s less the fee", tx.Outputs, to, sum)
	}

	st := e.include(tx)
	e.checkIncluded(tx, st)

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
	tx := e.sign(e.order(e.wallet(), e.native, e.stranger(), amount(e.native)))
	if st := e.status(tx); st.State != chain.TxUnknown || st.Final || !st.Block.IsZero() || st.Death != "" {
		e.t.Errorf("a transaction that was never sent is %+v, want unknown", st)
	}

	e.mine(3)

	if st := e.status(tx); st.State != chain.TxUnknown && st.Death != chain.DeathExpired {
		e.t.Errorf("a transaction that was never sent is %+v three blocks later", st)
	}
}

func testSendTwice(e *env) {
	from, to := e.wallet(), e.stranger()
	tx := e.sign(e.order(from, e.native, to, amount(e.native)))
	e.broadcast(tx)
	e.state(tx, chain.TxPooled)
	e.must("Broadcast of bytes that wait in the pool", e.sender().Broadcast(e.ctx, tx))
	e.mine(1)
	e.state(tx, chain.TxIncluded)
	e.must("Broadcast of bytes that are in a block", e.sender().Broadcast(e.ctx, tx))
	e.mine(1)

	if got := e.balance(chain.Party{Address: to}, e.native); got != amount(e.native) {
		e.t.Errorf("%s arrived after sending the same bytes three times, want %s once", got, amount(e.native))
	}
}

func testSendMalformed(e *env) {
	tx := e.sign(e.order(e.wallet(), e.native, e.stranger(), amount(e.native)))
	cut, changed := tx, tx
	cut.Raw = tx.Raw[:len(tx.Raw)-3]
	changed.Raw = slices.Clone(tx.Raw)

	changed.Raw[0] ^= 0x55
	for name, bad := range map[string]chain.Signed{"cut": cut, "changed": changed} {
		e.wantFault("Broadcast of "+name+" bytes", e.sender().Broadcast(e.ctx, bad), fault.Invalid, "")
	}

	if st := e.status(tx); st.State != chain.TxUnknown {
		e.t.Errorf("after malformed bytes were refused the transaction is %s", st.State)
	}
}

func testSendUnfunded(e *env) {
	from := e.party(chain.RoleMaster)
	e.fund(from, e.native, amount(e.native).Mul(4))
	first := e.order(from, e.native, e.stranger(), amount(e.native).Mul(3))
	second := first
	second.Nonce++
	one, two := e.sign(first), e.sign(second)
	e.include(one)
	e.wantFault(
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

	o := e.order(from, e.native, e.stranger(), amount(e.native))
	o.Nonce = 1
	later := e.sign(o)
	o.Nonce = 0

	first := e.sign(o)
	if later.Nonce != 1 || first.Nonce != 0 {
		e.t.Fatalf(
			"the orders' nonces were 1 and 0, the transactions have %d and %d",
			later.Nonce, first.Nonce,
		)
	}

	e.broadcast(first)
	e.state(first, chain.TxPooled)

	if got, err := nonces.Nonce(e.ctx, from.Address); err != nil || got != 0 {
		e.t.Errorf("Nonce = %d, %v while the first transaction waits: only blocks count", got, err)
	}

	e.broadcast(later)
	e.mine(1)
	e.state(first, chain.TxIncluded)
	e.state(later, chain.TxIncluded)

	if got, err := nonces.Nonce(e.ctx, from.Address); err != nil || got != 2 {
		e.t.Errorf("Nonce = %d, %v after two transactions", got, err)
	}
}

func testSendFork(e *env) {
	from, to := e.wallet(), e.stranger()
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

	again := e.include(tx)
	if again.Block.Hash == first.Block.Hash {
		e.t.Errorf("the transaction is in the block %s that left the chain", first.Block.Hash)
	}

	if got := e.balance(chain.Party{Address: to}, e.native); got != amount(e.native) {
		e.t.Errorf("%s arrived after the fork, want %s once", got, amount(e.native))
	}

	st := e.status(tx)
	e.fork(1, tx.TxHash)

	kept := e.state(tx, chain.TxIncluded)
	if kept.Block.Hash == st.Block.Hash {
		e.t.Errorf("after a fork that kept it the transaction is still in block %s", st.Block.Hash)
	}

	e.checkIncluded(tx, kept)
}

func testSendReverted(e *env) {
	token, _ := e.token()
	from, to := e.wallet(token), e.stranger()
	tokens, coins := e.balance(from, token), e.balance(from, e.native)
	tx := e.sign(e.order(from, token, to, amount(token)))
	e.must("Freezer.Freeze", e.Network.(Freezer).Freeze(e.ctx, to, token))
	e.settle()
	coins = e.unchanged(from, coins)

	st := e.include(tx)
	if !st.Reverted || len(st.Transfers) != 0 {
		e.t.Errorf("a transaction that failed is %+v, want Reverted and no transfers", st)
	}

	e.checkIncluded(tx, st)

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

// unchanged checks that a control took nothing from a party of ours.
func (e *env) unchanged(p chain.Party, want chain.Amount) chain.Amount {
	e.t.Helper()

	if got := e.balance(p, e.native); got != want {
		e.t.Fatalf("the harness moved coins of %s: %s, want %s", p.Address, got, want)
	}

	return want
}

func testSendEstimate(e *env) {
	for _, a := range e.assets() {
		from := e.wallet(a)
		o := e.order(from, a, e.stranger(), amount(a)) // MaxFee is the estimate

		tx := e.sign(o)
		if o.MaxFee.Cmp(tx.MaxFee) <= 0 {
			e.t.Errorf(
				"the estimate for %s is %s and the first transaction may cost %s: no room for a replacement",
				a.Symbol, o.MaxFee, tx.MaxFee,
			)
		}

		if st := e.include(tx); o.MaxFee.Less(st.Fee) {
			e.t.Errorf("the estimate for %s was %s, taken were %s", a.Symbol, o.MaxFee, st.Fee)
		}
	}
}
