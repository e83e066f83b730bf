package drivertest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

var nonceTests = []testCase{
	{"AccountsAreThoseOfTheAddress", nil, testNonceAccounts},
	{"ReadAtAFinalBlockInOrder", []Capability{NonceOpening}, testNoncesRead},
	{"OthersCannotBeUsed", []Capability{NonceOpening}, testNoncesUnusable},
	{"BytesNeverRunOut", []Capability{NonceOpening, Expiry}, testNonceOutlives},
	{"UsedAtAFinalBlock", []Capability{NonceOpening}, testNonceUsed},
	{"OneTransactionOfANonce", []Capability{NonceOpening}, testNonceExcludes},
	{"OneOfTwoThatWait", []Capability{NonceOpening}, testNoncesWait},
	{"FailedTransactionUsesTheNonce", []Capability{NonceOpening, Freezing, Tokens}, testNonceFailed},
	{"ReplacementKeepsTheNonce", []Capability{NonceOpening}, testNonceReplaced},
	{"ForkGivesTheNonceBack", []Capability{NonceOpening, Forking}, testNonceFork},
	{"BytesNameTheNonce", []Capability{NonceOpening, Decoder}, testNonceDecoded},
}

// nonceWallet returns an address of ours with coin and nonce accounts, and what these hold.
func (e *env) nonceWallet(n int, assets ...chain.Asset) (from chain.Party, nonces []chain.DurableNonce) {
	e.t.Helper()

	from = e.wallet(assets...)

	var accounts []chain.Address

	for range n {
		account, err := e.Network.(control.NonceOpener).OpenNonce(e.ctx, from.Address)
		e.must("NonceOpener.OpenNonce", err)

		accounts = append(accounts, account)
	}

	e.settle()

	e.eventually("the nonce accounts", func() error {
		nonces = nil

		for _, read := range e.readNonces(from.Address, accounts...) {
			if read.Unusable != "" {
				return fmt.Errorf("%s cannot be used: %s", read.Account, read.Unusable)
			}

			nonces = append(nonces, read.DurableNonce)
		}

		return nil
	})

	return from, nonces
}

func (e *env) readNonces(owner chain.Address, accounts ...chain.Address) []chain.NonceAccount {
	e.t.Helper()
	read, err := as[chain.DurableNonces](e).ReadNonces(e.ctx, owner, accounts)
	e.must("ReadNonces", err)

	if len(read) != len(accounts) {
		e.t.Fatalf("ReadNonces of %d accounts returned %d", len(accounts), len(read))
	}

	return read
}

// nonceOrder returns an order at a nonce that may cost several times its fee, so that it can be replaced.
func (e *env) nonceOrder(from chain.Party, nonce chain.DurableNonce, asset chain.Asset) chain.Order {
	e.t.Helper()

	order := e.complete(chain.Order{
		From:         from,
		Outputs:      []chain.Output{{To: e.newAddress(), AssetID: asset.ID, Amount: amount(asset)}},
		DurableNonce: &nonce,
	})
	order.MaxFee = order.MaxFee.Mul(4)

	return order
}

// signDurable signs an order with a durable nonce, and checks that the transaction uses it.
func (e *env) signDurable(order chain.Order) chain.Signed {
	e.t.Helper()

	tx := e.sign(order)
	if tx.DurableNonce == nil || *tx.DurableNonce != *order.DurableNonce {
		e.t.Fatalf("a transaction at %+v uses %+v", order.DurableNonce, tx.DurableNonce)
	}

	if tx.ValidToHeight != 0 || !tx.ValidTo.IsZero() {
		e.t.Fatalf("a transaction at a durable nonce is valid to height %d, %v", tx.ValidToHeight, tx.ValidTo)
	}

	return tx
}

// wantNonce fails the test unless a nonce is said to be used, or not.
func (e *env) wantNonce(when string, nonce chain.DurableNonce, want bool) {
	e.t.Helper()
	used, at, err := as[chain.DurableNonces](e).NonceUsed(e.ctx, nonce)
	e.must("NonceUsed", err)

	if used != want {
		e.t.Fatalf("%s: the nonce is said to be used: %v, at %+v", when, used, at)
	}
}

// waitUsed mines until a nonce is said to be used, and checks that this is not before its transaction is final.
func (e *env) waitUsed(nonce chain.DurableNonce, by chain.Signed) {
	e.t.Helper()

	e.eventually("a nonce that is used", func() error {
		used, at, err := as[chain.DurableNonces](e).NonceUsed(e.ctx, nonce)
		e.must("NonceUsed", err)

		if !used {
			e.mine(1)
			return errors.New("it is said to be free")
		}

		st, final := e.status(by), e.head().Final
		if st.State != chain.TxIncluded || !st.Final {
			e.t.Fatalf("the nonce is said to be used while its transaction is %+v", st)
		}

		if at.Height < st.Block.Height || !final.IsZero() && at.Height > final.Height {
			e.t.Errorf(
				"used in block %d, shown by block %d, the final one is %d",
				st.Block.Height,
				at.Height,
				final.Height,
			)
		}

		if ref, err := e.Driver.RefAt(e.ctx, at.Height); err != nil || ref.Hash != at.Hash {
			e.t.Errorf("it is shown by block %+v; the canonical one is %+v, %v", at, ref, err)
		}

		return nil
	})
}

func testNonceAccounts(e *env) {
	reader, party := as[chain.DurableNonces](e), e.party(chain.RoleMaster)

	var want []chain.Address

	if e.has(NonceOpening) {
		var nonces []chain.DurableNonce

		party, nonces = e.nonceWallet(2)
		want = []chain.Address{nonces[0].Account, nonces[1].Account}
	}

	got := reader.NonceAccounts(party.Address)
	if slices.Sort(got); len(slices.Compact(got)) != len(want) {
		e.t.Errorf("the nonce accounts are %q, want %q", got, want)
	}

	for _, account := range want {
		if !slices.Contains(got, account) {
			e.t.Errorf("the nonce accounts are %q, without %q", got, account)
		}
	}

	if !e.has(UnreachableNode) {
		return
	}

	if offline := e.Unreachable.(chain.DurableNonces).NonceAccounts(
		party.Address,
	); len(
		offline,
	) != len(
		want,
	) {
		e.t.Errorf("without a node the nonce accounts are %q, want %q", offline, want)
	}
}

func testNoncesRead(e *env) {
	from, nonces := e.nonceWallet(2)
	tx := e.signDurable(e.nonceOrder(from, nonces[0], e.native))
	e.include(tx)
	e.waitUsed(nonces[0], tx)

	// In the other order, to see that the answer follows it.
	read, final := e.readNonces(from.Address, nonces[1].Account, nonces[0].Account), e.head().Final

	for i, want := range []chain.Address{nonces[1].Account, nonces[0].Account} {
		if read[i].Account != want || read[i].Unusable != "" || read[i].Value == "" {
			e.t.Errorf("account %d is read as %+v, want a usable %s", i, read[i], want)
		}

		if !final.IsZero() && read[i].Height > final.Height {
			e.t.Errorf(
				"account %s is read at block %d, the final one is %d",
				want,
				read[i].Height,
				final.Height,
			)
		}
	}

	if read[0].Value != nonces[1].Value || read[1].Value == nonces[0].Value {
		e.t.Errorf("one of %+v was used, and now they are %+v", nonces, read)
	}

	// What an account holds after its first transaction can be used as the first was.
	again := e.signDurable(e.nonceOrder(from, read[1].DurableNonce, e.native))
	if st := e.include(again); st.Block.Height <= read[1].Height {
		e.t.Errorf("included in block %d at a nonce of block %d", st.Block.Height, read[1].Height)
	}
}

func testNoncesUnusable(e *env) {
	from, nonces := e.nonceWallet(1)
	other := e.party(chain.RoleMaster)

	read := e.readNonces(from.Address, e.newAddress(), nonces[0].Account)
	if read[0].Unusable == "" || read[1].Unusable != "" {
		e.t.Errorf("an address that is no nonce account and one that is are %+v", read)
	}

	if read := e.readNonces(other.Address, nonces[0].Account); read[0].Unusable == "" {
		e.t.Errorf("the nonce account of another address is %+v", read[0])
	}
}

func testNonceOutlives(e *env) {
	expirer, ok := e.Network.(control.Expirer)
	if !ok {
		e.t.Fatal("implement control.Expirer, or declare it absent")
	}

	from, nonces := e.nonceWallet(1)
	durable := e.signDurable(e.nonceOrder(from, nonces[0], e.native))
	expires := e.sign(e.order(e.wallet(), e.native, e.newAddress(), amount(e.native)))
	e.must("Expirer.Expire", expirer.Expire(e.ctx, expires))
	e.settle()

	if st := e.status(durable); st.State != chain.TxUnknown {
		e.t.Errorf("after others ran out a transaction that was not sent is %+v", st)
	}

	e.wantNonce("after others ran out", nonces[0], false)
	e.include(durable)
}

func testNonceUsed(e *env) {
	from, nonces := e.nonceWallet(2)
	tx := e.signDurable(e.nonceOrder(from, nonces[0], e.native))
	e.wantNonce("before it was sent", nonces[0], false)
	e.broadcast(tx)
	e.wantNonce("when it was sent", nonces[0], false)
	e.mine(1)

	st := e.waitState(tx, chain.TxIncluded)
	if st.Block.Height <= nonces[0].Height {
		e.t.Errorf("included in block %d at a nonce of block %d", st.Block.Height, nonces[0].Height)
	}

	e.waitUsed(nonces[0], tx)
	e.wantNonce("after that of another account", nonces[1], false)

	// A node that has not reached the block in which a nonce was read shows what its account held before.
	later := nonces[0]
	later.Height = e.head().Tip.Height + 100
	e.wantNonce("by a node that is behind", later, false)
}

func testNonceExcludes(e *env) {
	from, nonces := e.nonceWallet(1)
	winner := e.signDurable(e.nonceOrder(from, nonces[0], e.native))
	loser := e.signDurable(e.nonceOrder(from, nonces[0], e.native))
	e.include(winner)
	e.wantLost(loser, winner)

	// The account's state is no matter of Build: a cancel at a nonce that may be used must be possible.
	e.build(e.nonceOrder(from, nonces[0], e.native))
}

// testNoncesWait has two transactions at one nonce wait for the same block.
func testNoncesWait(e *env) {
	from, nonces := e.nonceWallet(1)
	first := e.signDurable(e.nonceOrder(from, nonces[0], e.native))
	second := e.signDurable(e.nonceOrder(from, nonces[0], e.native))
	e.broadcast(first)

	_ = e.sender().Broadcast(e.ctx, second) // a node may refuse it

	e.mine(1)

	e.eventually("one of the two in a block", func() error {
		if one, other := e.status(first).State, e.status(second).State; one != chain.TxIncluded &&
			other != chain.TxIncluded {
			return fmt.Errorf("they are %s and %s", one, other)
		}

		return nil
	})

	if e.status(second).State == chain.TxIncluded {
		first, second = second, first
	}

	e.wantLost(second, first)
}

// wantLost fails the test unless a transaction at the nonce of another one is never included, and dead once that is
// final, and not before.
func (e *env) wantLost(loser, winner chain.Signed) {
	e.t.Helper()

	_ = e.sender().Broadcast(e.ctx, loser) // a node may refuse it, or not know yet that it has to
	e.mine(1)

	if st, won := e.status(loser), e.status(winner); st.State == chain.TxDead && !won.Final {
		e.t.Errorf("it is dead while the one at its nonce is %+v", won)
	}

	e.waitUsed(*loser.DurableNonce, winner)

	if e.has(BlockScanner) {
		if st := e.status(loser); st.State == chain.TxIncluded || st.Reason == chain.ReasonExpired {
			e.t.Errorf("the second transaction of a nonce is %+v", st)
		}
	} else if st := e.waitState(loser, chain.TxDead); st.Reason != chain.ReasonConflict {
		e.t.Errorf("the second transaction of a nonce died of %q", st.Reason)
	}

	out := loser.Outputs[0]
	if asset, _ := e.network.AssetByID(
		out.AssetID,
	); !e.balance(chain.Party{Address: out.To}, asset).
		IsZero() {
		e.t.Error("two transactions at one nonce paid")
	}
}

func testNonceFailed(e *env) {
	token, _ := e.token()
	from, nonces := e.nonceWallet(1, token)
	order := e.nonceOrder(from, nonces[0], token)
	failing := e.signDurable(order)
	loser := e.signDurable(e.nonceOrder(from, nonces[0], e.native))

	e.must("Freezer.Freeze", e.Network.(control.Freezer).Freeze(e.ctx, order.Outputs[0].To, token))
	e.settle()

	if st := e.include(failing); !st.Reverted {
		e.t.Fatalf("a transaction that failed is %+v", st)
	}

	e.wantLost(loser, failing)
}

func testNonceReplaced(e *env) {
	from, nonces := e.nonceWallet(2)
	order := e.nonceOrder(from, nonces[0], e.native)
	old := e.signDurable(order)
	order.Replaces = &old
	order.Outputs = []chain.Output{{To: e.newAddress(), AssetID: e.native.ID, Amount: amount(e.native)}}

	replacement := e.signDurable(order)
	if replacement.TxHash == old.TxHash || replacement.MaxFee.Cmp(old.MaxFee) <= 0 {
		e.t.Errorf("%+v replaces %+v: it has to pay more", replacement, old)
	}

	e.include(replacement)
	e.wantLost(old, replacement)
}

func testNonceFork(e *env) {
	from, nonces := e.nonceWallet(1)
	tx := e.signDurable(e.nonceOrder(from, nonces[0], e.native))
	other := e.signDurable(e.nonceOrder(from, nonces[0], e.native))
	e.include(tx)
	e.fork(1)

	if st := e.status(other); st.State == chain.TxDead {
		e.t.Errorf("it is dead after the block that used its nonce left the chain: %+v", st)
	}

	e.wantNonce("after a fork", nonces[0], false)
	e.include(tx)
	e.wantLost(other, tx)
}

func testNonceDecoded(e *env) {
	for _, asset := range e.assets() {
		from, nonces := e.nonceWallet(1, asset)
		unsigned := e.build(e.nonceOrder(from, nonces[0], asset))

		decoded, err := as[chain.Decoder](e).Decode(unsigned.Raw)
		e.must("Decode", err)

		want := []string{chaindata.SpendKey(chaindata.NonceSpend(nonces[0]))}
		if got := chaindata.SpendsOf(decoded, from.Address); !slices.Equal(got, want) {
			e.t.Errorf("%s: it uses up %q, want %q", asset.Symbol, got, want)
		}
	}
}
