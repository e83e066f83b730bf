package drivertest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Cases of drivers that ask several nodes, and of answers that have to be in a block.

// moreThanFinal is how many blocks make any transaction of a test network final.
const moreThanFinal = 12

var rereadTests = []testCase{
	{"BlockIsReadAgain", []Capability{BlockScanner}, testReread},
	{"TransactionsAreReadAgain", []Capability{Finder}, testRereadTransactions},
	{"AnotherBlockIsNotFound", []Capability{BlockScanner}, testRereadOther},
	{"AnotherNodeIsAsked", []Capability{LyingNodes, BlockScanner}, testRereadLie},
}

var confirmTests = []testCase{
	{"CanonicalBlockIsConfirmed", nil, testConfirm},
	{"OneNodeAloneIsNotEnough", []Capability{LyingNodes}, testConfirmLie},
	{"WithoutASecondNodeNothingIsConfirmed", []Capability{LyingNodes}, testConfirmSilence},
}

var countTests = []testCase{
	{"CountIsConfirmed", nil, testCount},
	{"AnotherCountIsNotFound", []Capability{LyingNodes}, testCountOther},
	{"WithoutASecondNodeNothingIsConfirmed", []Capability{LyingNodes}, testCountSilence},
}

// tipBlock pays to an address, mines, and returns the block that holds the payment.
func (e *env) tipBlock() chain.Block {
	e.t.Helper()

	from := e.nextHeight()
	e.pay(e.newAddress(), e.native, amount(e.native))
	e.mine(1)

	return e.scan(from)[0]
}

func testReread(e *env) {
	want := e.tipBlock()
	got, err := as[chain.Rereader](e).Reread(e.ctx, want.Ref, nil)
	e.must("Reread", err)

	if got.Hash != want.Hash || got.Parent != want.Parent || !slices.Equal(got.Transfers, want.Transfers) ||
		!slices.Equal(got.Spent, want.Spent) {
		e.t.Errorf("Reread shows %+v, Blocks %+v", got, want)
	}
}

func testRereadTransactions(e *env) {
	pay := func() (to chain.Address, found chain.FoundTx) {
		to = e.newAddress()
		hash := e.pay(to, e.native, amount(e.native))
		e.mine(1)

		return to, e.findIncluded(hash)
	}

	to, paid := pay()
	other, later := pay()

	got, err := as[chain.Rereader](e).Reread(e.ctx, paid.Block, []string{paid.TxHash, later.TxHash})
	e.must("Reread", err)

	if got.Ref != paid.Block {
		e.t.Errorf("Reread of block %+v returned %+v", paid.Block, got.Ref)
	}

	e.expectTransfer(
		"the transaction in the block",
		transfersTo([]chain.Block{got}, to), paid.TxHash, to, e.native, amount(e.native),
	)

	if moved := transfersTo([]chain.Block{got}, other); len(moved) != 0 || len(got.Unread) != 0 {
		e.t.Errorf("a transaction of a later block moved %+v in it; unread %+v", moved, got.Unread)
	}
}

func testRereadOther(e *env) {
	at := e.tipBlock().Ref
	at.Hash = otherHash(at.Hash)
	got, err := as[chain.Rereader](e).Reread(e.ctx, at, nil)
	e.expectFault("Reread of a block that is not the node's", err, fault.NotFound, "")

	if !got.IsZero() {
		e.t.Errorf("Reread returned %+v beside its error", got)
	}
}

// lieAt makes the first node show another block, and returns the right one and what the node says.
func (e *env) lieAt() (right, wrong chain.Ref) {
	e.t.Helper()

	right = e.tipBlock().Ref
	e.must("NodeFaker.ShowOther", e.Network.(NodeFaker).ShowOther(e.ctx, right.Height))

	var err error

	wrong, err = e.Driver.RefAt(e.ctx, right.Height)
	e.must("RefAt", err)

	if wrong.Hash == right.Hash {
		e.t.Fatalf("NodeFaker.ShowOther shows the same block %s", right.Hash)
	}

	return right, wrong
}

func testRereadLie(e *env) {
	_, wrong := e.lieAt()
	_, err := as[chain.Rereader](e).Reread(e.ctx, wrong, nil)
	e.expectFault("Reread of a block that only one node has", err, fault.NotFound, "")
}

func testConfirm(e *env) {
	from := e.nextHeight()
	e.mine(2)

	for height := from; height < from+2; height++ {
		ref, err := e.Driver.RefAt(e.ctx, height)
		e.must("RefAt", err)
		e.must("ConfirmRef of a canonical block", as[chain.RefConfirmer](e).ConfirmRef(e.ctx, ref))
	}
}

func testConfirmLie(e *env) {
	right, wrong := e.lieAt()
	confirmer := as[chain.RefConfirmer](e)
	e.expectFault(
		"ConfirmRef of a block that only one node has",
		confirmer.ConfirmRef(e.ctx, wrong),
		fault.NotFound,
		"",
	)

	// Whether two others have it is up to how many nodes there are; two nodes that differ never agree.
	if err := confirmer.ConfirmRef(e.ctx, right); err != nil && !errors.Is(err, fault.NotFound) {
		e.t.Errorf("ConfirmRef while one node has another block: %v, want fault.NotFound or nil", err)
	}
}

func testConfirmSilence(e *env) {
	ref := e.tipBlock().Ref
	e.must("NodeFaker.Silence", e.Network.(NodeFaker).Silence(e.ctx))
	e.expectFault(
		"ConfirmRef without a second node",
		as[chain.RefConfirmer](e).ConfirmRef(e.ctx, ref), fault.Unavailable, "",
	)
}

// expectHeld checks that an included transaction is in the canonical block that the status names.
func (e *env) expectHeld(tx chain.Signed, st chain.TxStatus) {
	e.t.Helper()

	blocks, err := as[chain.BlockScanner](e).Blocks(e.ctx, st.Block.Height, st.Block.Height)
	if err != nil || blocks[0].Hash != st.Block.Hash {
		e.t.Fatalf(
			"%s is said to be in block %+v, the canonical one is %+v, %v",
			tx.TxHash,
			st.Block,
			blocks,
			err,
		)
	}

	spent := spentBy(blocks, tx.TxHash)
	if len(spent) == 0 || spent[0].Failed != st.Reverted {
		e.t.Fatalf("%s is said to be in block %+v, which has %+v of it", tx.TxHash, st, spent)
	}
}

func testSendInBlock(e *env) {
	e.mine(2)
	tx := e.sign(e.order(e.wallet(), e.native, e.newAddress(), amount(e.native)))

	look := func() {
		e.t.Helper()

		if st := e.status(tx); st.State == chain.TxIncluded {
			e.expectHeld(tx, st)
		}
	}

	look()
	e.broadcast(tx)
	look()
	e.mine(1)
	e.expectHeld(tx, e.waitState(tx, chain.TxIncluded))
	e.fork(1)
	look()
	e.eventually("a transaction out of its block", func() error {
		if st := e.status(tx); st.State != chain.TxUnknown && st.State != chain.TxPooled {
			return fmt.Errorf("it is %+v", st)
		}

		return nil
	})
}

func testSendDenied(e *env) {
	tx := e.sign(e.order(e.wallet(), e.native, e.newAddress(), amount(e.native)))
	e.broadcast(tx)
	e.must("NodeFaker.Deny", e.Network.(NodeFaker).Deny(e.ctx, tx.TxHash))

	for range moreThanFinal {
		st, err := e.sender().Status(e.ctx, tx)
		if err != nil && !errors.Is(err, fault.Unavailable) {
			e.t.Fatalf("Status of a transaction that one node denies: %v", err)
		}

		if st.State == chain.TxDead {
			e.t.Fatalf(
				"one node denies a transaction, and it is called dead of %s: blocks hold it",
				st.Reason,
			)
		}

		e.mine(1)
	}
}

func testSendHiddenLogs(e *env) {
	for _, asset := range e.assets() {
		to := e.newAddress()
		tx := e.sign(e.order(e.wallet(asset), asset, to, amount(asset)))
		e.include(tx)
		e.must("NodeFaker.HideLogs", e.Network.(NodeFaker).HideLogs(e.ctx, tx.TxHash))

		st, err := e.sender().Status(e.ctx, tx)
		if err == nil && st.State == chain.TxIncluded {
			e.expectTransfer(
				"Status while one node hides the logs",
				filterTransfers(st.Transfers, to), tx.TxHash, to, asset, amount(asset),
			)
		} else if err != nil && !errors.Is(err, fault.Unavailable) || st.State == chain.TxDead {
			e.t.Errorf("Status while one node hides the logs: %+v, %v", st, err)
		}
	}
}

func testFinderHiddenLogs(e *env) {
	for _, asset := range e.assets() {
		to := e.newAddress()
		hash := e.pay(to, asset, amount(asset))
		e.mine(1)
		e.findIncluded(hash)
		e.must("NodeFaker.HideLogs", e.Network.(NodeFaker).HideLogs(e.ctx, hash))

		found, err := e.find(hash)
		if err == nil && !found.Block.IsZero() {
			e.expectTransfer(
				"looked up while one node hides the logs",
				filterTransfers(found.Transfers, to), hash, to, asset, amount(asset),
			)
		} else if err != nil && !errors.Is(err, fault.Unavailable) {
			e.t.Errorf("Transaction while one node hides the logs: %+v, %v", found, err)
		}
	}
}

// counted pays, and returns the payer, the height of the block that holds the payment, and how many transactions of the
// payer are in blocks up to it.
func (e *env) counted() (payer chain.Address, height, count uint64) {
	e.t.Helper()

	block := e.tipBlock()
	payer = block.Transfers[len(block.Transfers)-1].From

	count, err := as[chain.Nonces](e).Nonce(e.ctx, payer)
	e.must("Nonce", err)

	return payer, block.Height, count
}

func testCount(e *env) {
	payer, height, count := e.counted()
	confirmer := as[chain.NonceConfirmer](e)

	e.must("ConfirmNonce of what was counted", confirmer.ConfirmNonce(e.ctx, payer, height, count))
	e.must("ConfirmNonce of an address without any", confirmer.ConfirmNonce(e.ctx, e.newAddress(), height, 0))

	// The height counts, not the tip.
	e.tipBlock()
	e.must("ConfirmNonce below the tip", confirmer.ConfirmNonce(e.ctx, payer, height, count))
}

func testCountOther(e *env) {
	payer, height, count := e.counted()
	confirmer := as[chain.NonceConfirmer](e)

	for _, other := range []uint64{count - 1, count + 1, count + 1000} {
		e.expectFault(
			"ConfirmNonce of what no node counts",
			confirmer.ConfirmNonce(e.ctx, payer, height, other), fault.NotFound, "",
		)
	}
}

func testCountSilence(e *env) {
	payer, height, count := e.counted()
	e.must("NodeFaker.Silence", e.Network.(NodeFaker).Silence(e.ctx))
	e.expectFault(
		"ConfirmNonce without a second node",
		as[chain.NonceConfirmer](e).ConfirmNonce(e.ctx, payer, height, count), fault.Unavailable, "",
	)
}
