package drivertest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/fault"
)

// Cases of drivers that ask several nodes, and of answers that have to be in a block.

// moreThanFinal is how many blocks make any transaction of a test network final.
const moreThanFinal = 12

var agreedTests = []testCase{
	{"BlockIsReadAgain", []Capability{BlockScanner}, testAgreedBlock},
	{"TransactionsAreReadAgain", []Capability{Finder}, testAgreedTransactions},
	{"CanonicalBlockIsAgreed", nil, testAgreedRef},
	{"AnotherBlockIsNotFound", []Capability{BlockScanner}, testAgreedOther},
	{"HeadIsOrdered", nil, testAgreedHead},
	{"NodesAreNamed", nil, testNodes},
	{"OneNodeAloneIsNotEnough", []Capability{LyingNodes, BlockScanner}, testAgreedLie},
	{"WithoutASecondNodeNothingIsAgreed", []Capability{LyingNodes, BlockScanner}, testAgreedSilence},
	{"BalanceOfOneNodeIsProvisional", []Capability{LyingNodes, Balancer}, testBalanceSilence},
	{"MissingNodeIsNamed", []Capability{LyingNodes}, testSilenceIsNamed},
}

var countTests = []testCase{
	{"CountIsThatOfTheBlock", nil, testCount},
	{"WithoutASecondNodeNothingIsAgreed", []Capability{LyingNodes}, testCountSilence},
}

// tipBlock pays to an address, mines, and returns the block that holds the payment.
func (e *env) tipBlock() chain.Block {
	e.t.Helper()

	from := e.nextHeight()
	e.pay(e.newAddress(), e.native, amount(e.native))
	e.mine(1)

	return e.scan(from)[0]
}

// agreed returns the driver as one that asks several nodes.
func (e *env) agreed() chain.Agreed { return as[chain.Agreed](e) }

// notAgreed checks the error of what two nodes do not give alike.
func (e *env) notAgreed(what string, err error, code string) {
	e.t.Helper()
	e.expectFault(what, err, fault.Unavailable, code)

	if !errors.Is(err, chain.ErrNotAgreed) {
		e.t.Fatalf("%s: %v is no chain.ErrNotAgreed", what, err)
	}
}

func testAgreedBlock(e *env) {
	want := e.tipBlock()
	got, err := e.agreed().
		AgreedBlock(e.ctx, want.Ref, []string{want.Transfers[len(want.Transfers)-1].TxHash})
	e.must("AgreedBlock", err)

	paid := want.Transfers[len(want.Transfers)-1]
	if got.Hash != want.Hash ||
		!slices.Equal(filterTransfers(got.Transfers, paid.To), filterTransfers(want.Transfers, paid.To)) ||
		!slices.Equal(spentBy([]chain.Block{got}, paid.TxHash), spentBy([]chain.Block{want}, paid.TxHash)) {
		e.t.Errorf("AgreedBlock shows %+v, Blocks %+v", got, want)
	}
}

func testAgreedTransactions(e *env) {
	pay := func() (to chain.Address, found chain.FoundTx) {
		to = e.newAddress()
		hash := e.pay(to, e.native, amount(e.native))
		e.mine(1)

		return to, e.findIncluded(hash)
	}

	to, paid := pay()
	other, later := pay()

	got, err := e.agreed().AgreedBlock(e.ctx, paid.Block, []string{paid.TxHash, later.TxHash})
	e.must("AgreedBlock", err)

	if got.Ref != paid.Block {
		e.t.Errorf("AgreedBlock of %+v returned %+v", paid.Block, got.Ref)
	}

	e.expectTransfer(
		"the transaction in the block",
		transfersTo([]chain.Block{got}, to), paid.TxHash, to, e.native, amount(e.native),
	)

	if moved := transfersTo([]chain.Block{got}, other); len(moved) != 0 || len(got.Unread) != 0 {
		e.t.Errorf("a transaction of a later block moved %+v in it; unread %+v", moved, got.Unread)
	}
}

func testAgreedRef(e *env) {
	from := e.nextHeight()
	e.mine(2)

	for height := from; height < from+2; height++ {
		ref, err := e.Driver.RefAt(e.ctx, height)
		e.must("RefAt", err)

		got, err := e.agreed().AgreedBlock(e.ctx, ref, nil)
		e.must("AgreedBlock of a canonical block", err)

		if got.Ref != ref {
			e.t.Errorf("AgreedBlock of %+v returned %+v", ref, got.Ref)
		}
	}
}

func testAgreedOther(e *env) {
	block := e.tipBlock()
	at := block.Ref
	at.Hash = block.Parent // the hash of a block, and not of this one

	for _, hashes := range [][]string{nil, {block.Transfers[0].TxHash}} {
		got, err := e.agreed().AgreedBlock(e.ctx, at, hashes)
		e.expectFault("AgreedBlock of a block that is not the nodes'", err, fault.NotFound, "")

		if !got.IsZero() {
			e.t.Errorf("AgreedBlock returned %+v beside its error", got)
		}
	}
}

func testAgreedHead(e *env) {
	e.mine(2)

	head, err := e.agreed().AgreedHead(e.ctx)
	e.must("AgreedHead", err)

	if head.Tip.IsZero() || head.Safe.Height > head.Tip.Height || head.Final.Height > head.Tip.Height ||
		!head.Safe.IsZero() && head.Final.Height > head.Safe.Height {
		e.t.Errorf("AgreedHead is %+v", head)
	}

	for _, ref := range []chain.Ref{head.Tip, head.Safe, head.Final} {
		if ref.IsZero() {
			continue
		}

		if shown, err := e.Driver.RefAt(e.ctx, ref.Height); err != nil || shown.Hash != ref.Hash {
			e.t.Errorf("AgreedHead names %+v, RefAt shows %+v, %v", ref, shown, err)
		}
	}
}

func testNodes(e *env) {
	e.mine(1)

	_, err := e.agreed().AgreedHead(e.ctx)
	e.must("AgreedHead", err)

	nodes := e.agreed().Nodes()
	if len(nodes) == 0 {
		e.t.Fatal("Nodes names no node")
	}

	for _, node := range nodes {
		if node.Name == "" || node.Tip == 0 || node.Trouble != "" {
			e.t.Errorf("a healthy node is %+v", node)
		}
	}
}

// lieAt makes the first node show another block, and returns the right one and what the node says.
func (e *env) lieAt() (right, wrong chain.Ref) {
	e.t.Helper()

	right = e.tipBlock().Ref
	e.must("NodeFaker.ShowOther", e.Network.(control.NodeFaker).ShowOther(e.ctx, right.Height))

	var err error

	wrong, err = e.Driver.RefAt(e.ctx, right.Height)
	e.must("RefAt", err)

	if wrong.Hash == right.Hash {
		e.t.Fatalf("NodeFaker.ShowOther shows the same block %s", right.Hash)
	}

	return right, wrong
}

func testAgreedLie(e *env) {
	right, wrong := e.lieAt()

	_, err := e.agreed().AgreedBlock(e.ctx, wrong, nil)
	if err == nil {
		e.t.Fatalf("AgreedBlock of a block that only one node has: %+v is agreed", wrong)
	}

	// Whether two others have it is up to how many nodes there are; two nodes that differ never agree.
	if _, err := e.agreed().AgreedBlock(e.ctx, right, nil); err != nil {
		e.notAgreed("AgreedBlock while one node has another block", err, "nodes_disagree")
	}
}

func testAgreedSilence(e *env) {
	block := e.tipBlock()
	e.must("NodeFaker.Silence", e.Network.(control.NodeFaker).Silence(e.ctx))

	for _, hashes := range [][]string{nil, {block.Transfers[len(block.Transfers)-1].TxHash}} {
		_, err := e.agreed().AgreedBlock(e.ctx, block.Ref, hashes)
		e.notAgreed("AgreedBlock without a second node", err, "nodes_missing")
	}

	_, err := e.agreed().AgreedHead(e.ctx)
	e.notAgreed("AgreedHead without a second node", err, "nodes_missing")
}

func testBalanceSilence(e *env) {
	to := e.newAddress()
	e.pay(to, e.native, amount(e.native))
	e.mine(1)

	at := e.head().Tip
	e.must("NodeFaker.Silence", e.Network.(control.NodeFaker).Silence(e.ctx))

	held := []chain.Holding{{Address: to, AssetID: e.native.ID}}
	got, err := as[chain.Balancer](e).Balances(e.ctx, at, held)

	unreadable, ok := errors.AsType[*chain.UnreadableError](err)
	if !ok || len(got) != 1 || got[0] != amount(e.native) || len(unreadable.Holdings) != 1 ||
		!unreadable.Holdings[0].Provisional || !errors.Is(unreadable.Holdings[0].Err, chain.ErrNotAgreed) {
		e.t.Errorf(
			"Balances without a second node: %v, %v; want the one node's word, as provisional",
			got,
			err,
		)
	}
}

func testSilenceIsNamed(e *env) {
	e.mine(1)
	e.must("NodeFaker.Silence", e.Network.(control.NodeFaker).Silence(e.ctx))

	_, err := e.agreed().AgreedHead(e.ctx)
	e.notAgreed("AgreedHead without a second node", err, "nodes_missing")

	for _, node := range e.agreed().Nodes() {
		if node.Trouble == chain.NodeSilent && node.Why != "" && !node.Since.IsZero() {
			return
		}
	}

	e.t.Errorf("no node is named as silent: %+v", e.agreed().Nodes())
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
	e.must("NodeFaker.Deny", e.Network.(control.NodeFaker).Deny(e.ctx, tx.TxHash))

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
		e.must("NodeFaker.HideLogs", e.Network.(control.NodeFaker).HideLogs(e.ctx, tx.TxHash))

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
		e.must("NodeFaker.HideLogs", e.Network.(control.NodeFaker).HideLogs(e.ctx, hash))

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

// counted pays, and returns the payer, the block that holds the payment, and how many transactions of the payer are in
// blocks up to it.
func (e *env) counted() (payer chain.Address, at chain.Ref, count uint64) {
	e.t.Helper()

	block := e.tipBlock()
	payer = block.Transfers[len(block.Transfers)-1].From

	count, err := as[chain.Nonces](e).Nonce(e.ctx, payer)
	e.must("Nonce", err)

	return payer, block.Ref, count
}

func testCount(e *env) {
	payer, at, count := e.counted()
	nonces := as[chain.Nonces](e)

	expect := func(what string, address chain.Address, want uint64) {
		e.t.Helper()

		got, err := nonces.AgreedNonce(e.ctx, address, at)
		e.must("AgreedNonce "+what, err)

		if got != want {
			e.t.Errorf("AgreedNonce %s is %d, want %d", what, got, want)
		}
	}

	expect("of what was counted", payer, count)
	expect("of an address without any", e.newAddress(), 0)

	// The height counts, not the tip.
	e.tipBlock()
	expect("below the tip", payer, count)
}

func testCountSilence(e *env) {
	payer, at, _ := e.counted()
	e.must("NodeFaker.Silence", e.Network.(control.NodeFaker).Silence(e.ctx))

	_, err := as[chain.Nonces](e).AgreedNonce(e.ctx, payer, at)
	e.notAgreed("AgreedNonce without a second node", err, "nodes_missing")
}
