package drivertest

import (
	"errors"
	"fmt"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/fault"
)

var blockTests = []testCase{
	{"BlocksAreLinkedAndCanonical", nil, testBlocksLinked},
	{"PaymentIsFound", nil, testBlocksPayment},
	{"SeveralPaymentsInOneBlock", nil, testBlocksSeveral},
	{"FailedPaymentIsLeftOut", []Capability{FailedPayments}, testBlocksFailed},
	{"ZeroIsLeftOut", []Capability{ZeroPayments}, testBlocksZero},
	{"IndexSurvivesAFork", []Capability{Forking}, testBlocksForkKeeps},
	{"PaymentLeavesWithItsBlock", []Capability{Forking}, testBlocksForkDrops},
	{"RangeAboveTheTipIsNotFound", nil, testBlocksAbove},
	{"PrunedRangeIsStopped", []Capability{Pruning}, testBlocksPruned},
	{"SpentOutputsAreReported", []Capability{CoinSource, Sender}, testBlocksSpent},
	{"UsedNoncesAreReported", []Capability{Nonces}, testBlocksNonces},
	{"SpentListsEveryTransaction", nil, testBlocksSpentComplete},
	{"SpentListsFailedTransactions", []Capability{FailedPayments}, testBlocksSpentFailed},
	{"SenderIsNamed", []Capability{Sender}, testBlocksSender},
	{"BlockDecidesTheAmount", []Capability{VariablePayment}, testBlocksVariable},
	{"UnknownHeaderIsReadUnverified", []Capability{HeaderUpgrade}, testBlocksUpgraded},
}

// nextHeight returns the height at which a case begins to scan: a shared node may have a long past.
func (e *env) nextHeight() uint64 { return e.head().Tip.Height + 1 }

func testBlocksLinked(e *env) {
	from := e.nextHeight() - 1
	e.mine(5)

	all := e.scan(from)
	if len(all) < 6 {
		e.t.Fatalf("%d blocks from %d on, want at least 6", len(all), from)
	}

	for _, block := range all {
		ref, err := e.Driver.RefAt(e.ctx, block.Height)
		e.must("RefAt", err)

		if ref.Hash != block.Hash || !ref.Time.Equal(block.Time) {
			e.t.Errorf("Blocks has %+v at %d, RefAt %+v", block.Ref, block.Height, ref)
		}
	}

	one, err := as[chain.BlockScanner](e).Blocks(e.ctx, from+2, from+2)
	e.must("Blocks of one height", err)

	if len(one) != 1 || one[0].Hash != all[2].Hash || one[0].Parent != all[1].Hash {
		e.t.Errorf("Blocks(%d, %d) = %+v, want block %s", from+2, from+2, one, all[2].Hash)
	}

	some, err := as[chain.BlockScanner](e).Blocks(e.ctx, from+1, from+3)
	e.must("Blocks of a range below the tip", err)

	if len(some) > 3 {
		e.t.Errorf("Blocks(%d, %d) returned %d blocks", from+1, from+3, len(some))
	}
}

func testBlocksPayment(e *env) {
	for _, asset := range e.assets() {
		from, to := e.nextHeight(), e.newAddress()
		hash := e.pay(to, asset, amount(asset))
		e.mine(2)
		e.expectTransfer("a mined payment", transfersTo(e.scan(from), to), hash, to, asset, amount(asset))
	}
}

func testBlocksSeveral(e *env) {
	from := e.nextHeight()

	type payment struct {
		hash   string
		to     chain.Address
		amount chain.Amount
	}

	var paid []payment

	for i := range 3 {
		to := e.newAddress()
		sum := amount(e.native).Add(chain.Units(uint64(i)))
		paid = append(paid, payment{e.pay(to, e.native, sum), to, sum})
	}

	e.mine(1)
	blocks := e.scan(from)
	seen := map[string]bool{}

	for _, block := range blocks {
		for _, transfer := range block.Transfers {
			id := fmt.Sprintf("%s/%d", transfer.TxHash, transfer.Index)
			if seen[id] {
				e.t.Errorf("transfer %s is there twice", id)
			}

			seen[id] = true

			if transfer.Amount.IsZero() || transfer.To == "" || transfer.TxHash == "" {
				e.t.Errorf("transfer %+v is not complete", transfer)
			}

			if _, ok := e.network.AssetByID(transfer.AssetID); !ok {
				e.t.Errorf("transfer %+v is of no asset of the network", transfer)
			}
		}
	}

	for _, p := range paid {
		e.expectTransfer(
			"one of several payments",
			transfersTo(blocks, p.to), p.hash, p.to, e.native, p.amount,
		)
	}
}

func testBlocksFailed(e *env) {
	for _, asset := range e.assets() {
		from, to, other := e.nextHeight(), e.newAddress(), e.newAddress()
		_, err := e.Network.(control.FailingPayer).PayFailing(e.ctx, to, asset, amount(asset))
		e.must("FailingPayer.PayFailing", err)
		hash := e.pay(other, asset, amount(asset))
		e.mine(1)

		blocks := e.scan(from)
		if got := transfersTo(blocks, to); len(got) != 0 {
			e.t.Errorf("a payment that failed is reported: %+v", got)
		}

		e.expectTransfer(
			"the payment beside it",
			transfersTo(blocks, other), hash, other, asset, amount(asset),
		)
	}
}

func testBlocksZero(e *env) {
	for _, asset := range e.assets() {
		from, to := e.nextHeight(), e.newAddress()
		_, err := e.Network.(control.ZeroPayer).PayZero(e.ctx, to, asset)
		e.must("ZeroPayer.PayZero", err)
		e.settle()
		e.mine(1)

		if got := transfersTo(e.scan(from), to); len(got) != 0 {
			e.t.Errorf("a transfer of 0 is reported: %+v", got)
		}
	}
}

func testBlocksForkKeeps(e *env) {
	for _, asset := range e.assets() {
		from, to := e.nextHeight(), e.newAddress()
		// This one is before it in the old block, and not in the new one.
		e.pay(e.newAddress(), asset, amount(asset))

		hash := e.pay(to, asset, amount(asset))
		e.mine(1)
		before := e.scan(from)
		first := e.expectTransfer("before the fork", transfersTo(before, to), hash, to, asset, amount(asset))
		e.fork(1, hash)
		after := e.scan(from)

		second := e.expectTransfer("after the fork", transfersTo(after, to), hash, to, asset, amount(asset))
		if second.Index != first.Index {
			e.t.Errorf(
				"the %s transfer had index %d and has %d after the fork",
				asset.Symbol, first.Index, second.Index,
			)
		}

		if before[0].Hash == after[0].Hash {
			e.t.Errorf("block %d is the same %s on both branches", from, before[0].Hash)
		}
	}
}

func testBlocksForkDrops(e *env) {
	e.mine(1)
	from, to := e.nextHeight(), e.newAddress()
	hash := e.pay(to, e.native, amount(e.native))
	e.mine(2)
	e.expectTransfer("before the fork", transfersTo(e.scan(from), to), hash, to, e.native, amount(e.native))
	e.fork(2)

	if got := transfersTo(e.scan(from-1), to); len(got) != 0 {
		e.t.Errorf("the payment is still reported after its block left: %+v", got)
	}
}

func testBlocksAbove(e *env) {
	tip := e.head().Tip.Height
	blocks, err := as[chain.BlockScanner](e).Blocks(e.ctx, tip+1000, tip+1001)
	e.expectFault("Blocks above the tip", err, fault.NotFound, "")

	if len(blocks) != 0 {
		e.t.Errorf("Blocks above the tip returned %d blocks beside its error", len(blocks))
	}
}

func testBlocksPruned(e *env) {
	e.mine(4)
	tip := e.head().Tip.Height
	e.must("Pruner.Prune", e.Network.(control.Pruner).Prune(e.ctx, tip))
	e.settle()
	_, err := as[chain.BlockScanner](e).Blocks(e.ctx, tip-2, tip)
	e.expectFault("Blocks of a pruned range", err, fault.Stopped, "node_pruned")
}

func testBlocksSpent(e *env) {
	from := e.nextHeight()
	wallet := e.wallet(e.native)

	tx := e.sign(e.order(wallet, e.native, e.newAddress(), amount(e.native)))
	if len(tx.Inputs) == 0 {
		e.t.Fatal("a transaction that spends outputs names no inputs")
	}

	e.include(tx)

	spent := map[chain.Outpoint]string{}

	for _, block := range e.scan(from) {
		for _, spend := range block.Spent {
			spent[spend.Outpoint] = spend.By
		}
	}

	for _, in := range tx.Inputs {
		if spent[in] != tx.TxHash {
			e.t.Errorf("input %+v is spent by %q according to the block, want %s", in, spent[in], tx.TxHash)
		}
	}
}

func testBlocksNonces(e *env) {
	from, to := e.nextHeight(), e.newAddress()
	hash := e.pay(to, e.native, amount(e.native))
	e.mine(1)
	blocks := e.scan(from)
	paid := e.expectTransfer("in a block", transfersTo(blocks, to), hash, to, e.native, amount(e.native))

	var used []chain.Spend

	for _, block := range blocks {
		for _, spend := range block.Spent {
			if spend.By == hash {
				used = append(used, spend)
			}
		}
	}

	next, err := as[chain.Nonces](e).Nonce(e.ctx, paid.From)
	e.must("Nonce", err)

	if len(used) != 1 || used[0].Sender != paid.From || used[0].Nonce >= next ||
		used[0].Outpoint != (chain.Outpoint{}) {
		e.t.Errorf(
			"transaction %s of %s, whose next nonce is %d, uses up %+v according to its block",
			hash, paid.From, next, used,
		)
	}
}

var addressScanTests = []testCase{
	{"TransfersToTheAddressesAskedFor", nil, testAddressScan},
	{"FailedPaymentIsLeftOut", []Capability{FailedPayments}, testAddressScanFailed},
}

func testAddressScan(e *env) {
	scanner := as[chain.AddressScanner](e)
	for _, asset := range e.assets() {
		from := e.nextHeight()
		one, two, other := e.newAddress(), e.newAddress(), e.newAddress()
		first := e.pay(one, asset, amount(asset))
		e.pay(other, asset, amount(asset))
		e.mine(1)
		second := e.pay(two, asset, amount(asset).Add(amount(asset)))
		e.mine(2)
		to := e.head().Tip.Height

		var blocks []chain.Block

		e.eventually("both transfers", func() error {
			var err error

			blocks, err = scanner.TransfersTo(e.ctx, []chain.Address{one, two}, from, to)
			e.must("TransfersTo", err)

			if len(transfersTo(blocks, one)) == 0 || len(transfersTo(blocks, two)) == 0 {
				return fmt.Errorf("only %+v", blocks)
			}

			return nil
		})
		e.expectTransfer("the first address", transfersTo(blocks, one), first, one, asset, amount(asset))
		e.expectTransfer(
			"the second address", transfersTo(blocks, two), second, two, asset,
			amount(asset).Add(amount(asset)),
		)

		if got := transfersTo(blocks, other); len(got) != 0 {
			e.t.Errorf("an address that was not asked for is reported: %+v", got)
		}

		for i, block := range blocks {
			ref, err := e.Driver.RefAt(e.ctx, block.Height)
			e.must("RefAt", err)

			if ref.Hash != block.Hash || block.Height < from || block.Height > to ||
				len(block.Transfers) == 0 ||
				(i > 0 && block.Height <= blocks[i-1].Height) {
				e.t.Errorf(
					"block %+v is out of order or range %d to %d, empty, or not canonical",
					block, from, to,
				)
			}
		}

		none, err := scanner.TransfersTo(e.ctx, []chain.Address{e.newAddress()}, from, to)
		e.must("TransfersTo of an unused address", err)

		if len(none) != 0 {
			e.t.Errorf("an unused address has %+v", none)
		}
	}
}

func testAddressScanFailed(e *env) {
	from, to := e.nextHeight(), e.newAddress()
	_, err := e.Network.(control.FailingPayer).PayFailing(e.ctx, to, e.native, amount(e.native))
	e.must("FailingPayer.PayFailing", err)
	hash := e.pay(to, e.native, amount(e.native))
	e.mine(1)
	e.eventually("the payment that succeeded", func() error {
		tip := e.head().Tip.Height
		blocks, err := as[chain.AddressScanner](e).TransfersTo(e.ctx, []chain.Address{to}, from, tip)
		e.must("TransfersTo", err)

		if len(blocks) == 0 {
			return errors.New("nothing")
		}

		e.expectTransfer(
			"beside a failed payment", transfersTo(blocks, to), hash, to, e.native,
			amount(e.native),
		)

		return nil
	})
}
