package drivertest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/fault"
)

var poolTests = []testCase{
	{"WaitingPaymentIsShown", nil, testPool},
	{"SpentIsThatOfTheBlock", []Capability{BlockScanner}, testPoolSpent},
}

func testPool(e *env) {
	pool := as[chain.Mempool](e)
	for _, asset := range e.assets() {
		from, to := e.nextHeight(), e.newAddress()
		hash := e.pay(to, asset, amount(asset))

		var waiting chain.Transfer

		e.eventually("the payment in the pool", func() error {
			txs, err := pool.Pool(e.ctx)
			e.must("Pool", err)

			for _, tx := range txs {
				if tx.TxHash == hash {
					toAddress := filterTransfers(tx.Transfers, to)
					waiting = e.expectTransfer("in the pool", toAddress, hash, to, asset, amount(asset))

					if len(tx.Spent) == 0 && (e.has(Nonces) || e.has(CoinSource)) {
						e.t.Errorf("the waiting transaction %s does not say what it uses up", hash)
					}

					return nil
				}
			}

			return fmt.Errorf("%d transactions, but not %s", len(txs), hash)
		})
		e.mine(1)

		if e.has(BlockScanner) {
			mined := e.expectTransfer(
				"in a block",
				transfersTo(e.scan(from), to), hash, to, asset, amount(asset),
			)
			if mined.Index != waiting.Index {
				e.t.Errorf(
					"the transfer has index %d in the pool and %d in its block",
					waiting.Index, mined.Index,
				)
			}
		}

		e.eventually("a pool without the mined payment", func() error {
			txs, err := pool.Pool(e.ctx)
			e.must("Pool", err)

			for _, tx := range txs {
				if tx.TxHash == hash {
					return errors.New("it is still there")
				}
			}

			return nil
		})
	}
}

// filterTransfers picks the transfers to an address.
func filterTransfers(transfers []chain.Transfer, to chain.Address) []chain.Transfer {
	return transfersTo([]chain.Block{{Transfers: transfers}}, to)
}

var finderTests = []testCase{
	{"UnknownIsNotFound", nil, testFinderUnknown},
	{"FoundInItsBlock", nil, testFinderBlock},
	{"FoundInThePool", []Capability{Mempool}, testFinderPool},
	{"FailedIsSaid", []Capability{FailedPayments}, testFinderFailed},
	{"ForkTakesTheBlockAway", []Capability{Forking}, testFinderFork},
	{"SpentIsThatOfTheBlock", []Capability{BlockScanner}, testFinderSpent},
	{"FailedUsesUpAsMuch", []Capability{FailedPayments, BlockScanner}, testFinderSpentFailed},
	{"BlockDecidesTheAmount", []Capability{VariablePayment}, testFinderVariable},
	{"ReceiptWithoutLogsIsNotTaken", []Capability{LyingNodes}, testFinderHiddenLogs},
}

func (e *env) find(hash string) (chain.FoundTx, error) {
	return as[chain.Finder](e).Transaction(e.ctx, hash)
}

// findIncluded waits until a transaction is found in a block.
func (e *env) findIncluded(hash string) chain.FoundTx {
	e.t.Helper()

	var found chain.FoundTx

	e.eventually("the transaction in a block", func() (err error) {
		if found, err = e.find(hash); err == nil && found.Block.IsZero() {
			err = errors.New("it has no block")
		}

		return err
	})

	return found
}

func testFinderUnknown(e *env) {
	// A hash of the network's form that no transaction has.
	hash := e.pay(e.newAddress(), e.native, amount(e.native))
	e.mine(1)
	found, err := e.find(otherHash(hash))
	e.expectFault("Transaction of an unknown hash", err, fault.NotFound, "")

	if found.TxHash != "" || len(found.Transfers) != 0 {
		e.t.Errorf("an unknown transaction is %+v beside its error", found)
	}

	for _, garbage := range []string{"", "x", "not a hash", strings.Repeat("f", 5000)} {
		if found, err := e.find(garbage); err == nil {
			e.t.Errorf("Transaction(%.20q) = %+v", garbage, found)
		} else if !errors.Is(err, fault.NotFound) && !errors.Is(err, fault.Invalid) {
			e.t.Errorf(
				"Transaction(%.20q): %v, want fault.NotFound or fault.Invalid: payers write such hints",
				garbage, err,
			)
		}
	}
}

// otherHash returns another hash of the same form, be it hex or base58: its last two neighbors that differ change
// places.
func otherHash(hash string) string {
	other := []byte(hash)
	for i := len(other) - 1; i > 0; i-- {
		if other[i] != other[i-1] {
			other[i], other[i-1] = other[i-1], other[i]
			return string(other)
		}
	}

	panic("drivertest: a hash of one character, over and over: " + hash)
}

func testFinderBlock(e *env) {
	for _, asset := range e.assets() {
		from, to := e.nextHeight(), e.newAddress()
		hash := e.pay(to, asset, amount(asset))
		e.mine(2)
		found := e.findIncluded(hash)

		got := e.expectTransfer(
			"looked up",
			filterTransfers(found.Transfers, to), hash, to, asset, amount(asset),
		)
		if found.Failed || found.TxHash != hash {
			e.t.Errorf("found %+v, want %s without failure", found, hash)
		}

		ref, err := e.Driver.RefAt(e.ctx, found.Block.Height)
		e.must("RefAt", err)

		if ref.Hash != found.Block.Hash || found.Block.Height < from {
			e.t.Errorf("found in %+v, the canonical block is %+v", found.Block, ref)
		}

		if e.has(BlockScanner) {
			if scanned := transfersTo(e.scan(from), to); len(scanned) != 1 || scanned[0].Index != got.Index {
				e.t.Errorf("the transfer has index %d when looked up, scanned it is %+v", got.Index, scanned)
			}
		}
	}
}

func testFinderPool(e *env) {
	to := e.newAddress()
	hash := e.pay(to, e.native, amount(e.native))

	var found chain.FoundTx

	e.eventually("the waiting transaction", func() (err error) {
		found, err = e.find(hash)
		return err
	})

	if !found.Block.IsZero() || found.Failed {
		e.t.Errorf("a waiting transaction is %+v", found)
	}

	e.expectTransfer("waiting", filterTransfers(found.Transfers, to), hash, to, e.native, amount(e.native))
}

func testFinderFailed(e *env) {
	for _, asset := range e.assets() {
		hash, err := e.Network.(control.FailingPayer).PayFailing(e.ctx, e.newAddress(), asset, amount(asset))
		e.must("FailingPayer.PayFailing", err)
		e.settle()
		e.mine(1)

		if found := e.findIncluded(hash); !found.Failed || len(found.Transfers) != 0 {
			e.t.Errorf("a failed payment is %+v, want Failed and no transfers", found)
		}
	}
}

func testFinderFork(e *env) {
	hash := e.pay(e.newAddress(), e.native, amount(e.native))
	e.mine(1)
	e.findIncluded(hash)
	e.fork(1)
	e.eventually("the transaction out of its block", func() error {
		found, err := e.find(hash)
		if errors.Is(err, fault.NotFound) || (err == nil && found.Block.IsZero()) {
			return nil
		}

		return fmt.Errorf("%+v, %w", found, err)
	})
}
