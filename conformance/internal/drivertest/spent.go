package drivertest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// What transactions use up (chain.Spend), and what only their blocks decide.

// spentBy returns what a transaction uses up according to blocks.
func spentBy(blocks []chain.Block, hash string) []chain.Spend {
	var out []chain.Spend

	for _, block := range blocks {
		for _, spend := range block.Spent {
			if spend.By == hash {
				out = append(out, spend)
			}
		}
	}

	return out
}

// expectSpent checks that a transaction is in Block.Spent, of the network's form, and failed or not.
func (e *env) expectSpent(blocks []chain.Block, hash string, failed bool) {
	e.t.Helper()

	spent := spentBy(blocks, hash)
	if len(spent) == 0 {
		e.t.Errorf(
			"Block.Spent does not list %s (failed: %t), so it looks as if it were in no block",
			hash,
			failed,
		)
	}

	seen := map[string]bool{}

	for _, spend := range spent {
		if spend.Failed != failed {
			e.t.Errorf("%+v: failed is %t, want %t", spend, spend.Failed, failed)
		}

		if seen[chaindata.SpendKey(spend)] {
			e.t.Errorf("%s is used up twice in one block", chaindata.SpendKey(spend))
		}

		seen[chaindata.SpendKey(spend)] = true

		coin, account := spend.Outpoint != chain.Outpoint{}, spend.Sender != ""

		switch {
		case e.has(CoinSource) && (!coin || account || spend.Shared):
			e.t.Errorf("%+v is not an output, which this network spends", spend)
		case e.has(Nonces) && (coin || !account || spend.Shared):
			e.t.Errorf("%+v is not a nonce of a sender, which this network counts", spend)
		case !e.has(CoinSource) && !e.has(Nonces) && (coin || !account || !spend.Shared):
			e.t.Errorf("%+v is not a signer, Shared, of a network without nonces", spend)
		}
	}
}

// sameUse checks that pool or look-up and block say the same of what a transaction uses up.
func (e *env) sameUse(where string, got []chain.Spend, blocks []chain.Block, hash string) {
	e.t.Helper()

	keys := func(spends []chain.Spend) []string {
		var out []string
		for _, spend := range spends {
			out = append(out, fmt.Sprintf("%+v", chaindata.Used(spend)))
		}

		slices.Sort(out)

		return out
	}

	if want := spentBy(blocks, hash); !slices.Equal(keys(got), keys(want)) || len(want) == 0 {
		e.t.Errorf("%s: %s uses up %+v, according to its block %+v", where, hash, got, want)
	}

	for _, spend := range got {
		if spend.By != hash {
			e.t.Errorf("%s: %s uses up what %s does", where, hash, spend.By)
		}
	}
}

func testBlocksSpentComplete(e *env) {
	for _, asset := range e.assets() {
		from := e.nextHeight()
		one, two := e.pay(e.newAddress(), asset, amount(asset)), e.pay(e.newAddress(), asset, amount(asset))
		e.mine(1)
		blocks := e.scan(from)
		e.expectSpent(blocks, one, false)
		e.expectSpent(blocks, two, false)
	}
}

func testBlocksSpentFailed(e *env) {
	for _, asset := range e.assets() {
		from := e.nextHeight()
		failing, err := e.Network.(control.FailingPayer).PayFailing(
			e.ctx,
			e.newAddress(),
			asset,
			amount(asset),
		)
		e.must("FailingPayer.PayFailing", err)
		e.settle()
		good := e.pay(e.newAddress(), asset, amount(asset))
		e.mine(1)
		blocks := e.scan(from)
		e.expectSpent(blocks, failing, true)
		e.expectSpent(blocks, good, false)
	}
}

func testBlocksSender(e *env) {
	if e.has(CoinSource) {
		return // an output has no sender
	}

	for _, asset := range e.assets() {
		height, from, to := e.nextHeight(), e.wallet(asset), e.newAddress()
		tx := e.sign(e.order(from, asset, to, amount(asset)))
		e.include(tx)

		if got := transfersTo(e.scan(height), to); len(got) != 1 || got[0].From != from.Address {
			e.t.Errorf(
				"a transfer of %s out of %s is %+v; without From nothing can be taken from what arrived",
				asset.Symbol, from.Address, got,
			)
		}
	}
}

// payVariable sends a payment that claims ten times what it moves.
func (e *env) payVariable(to chain.Address, asset chain.Asset) (hash string, moved chain.Amount) {
	e.t.Helper()

	moved = amount(asset)
	hash, err := e.Network.(control.VariablePayer).PayVariable(e.ctx, to, asset, moved.Mul(10), moved)
	e.must("VariablePayer.PayVariable", err)
	e.settle()

	return hash, moved
}

// variableAsset is the asset of payments whose block moves another amount: a token, where there is one.
func (e *env) variableAsset() chain.Asset {
	if token, ok := e.token(); ok {
		return token
	}

	return e.native
}

func testBlocksVariable(e *env) {
	asset, from, to := e.variableAsset(), e.nextHeight(), e.newAddress()
	hash, moved := e.payVariable(to, asset)

	if e.has(Mempool) {
		e.eventually("the payment in the pool", func() error { // whatever amount it shows
			txs, err := as[chain.Mempool](e).Pool(e.ctx)
			e.must("Pool", err)

			if !slices.ContainsFunc(txs, func(tx chain.PoolTx) bool { return tx.TxHash == hash }) {
				return errors.New("it is not there")
			}

			return nil
		})
	}

	e.mine(1)
	e.expectTransfer("in its block", transfersTo(e.scan(from), to), hash, to, asset, moved)
}

func testBlocksUpgraded(e *env) {
	e.must("HeaderUpgrader.UpgradeHeaders", e.Network.(control.HeaderUpgrader).UpgradeHeaders(e.ctx))
	e.settle()
	from, to := e.nextHeight(), e.newAddress()
	hash := e.pay(to, e.native, amount(e.native))
	e.mine(1)

	blocks := e.scan(from)
	e.expectTransfer("after the upgrade", transfersTo(blocks, to), hash, to, e.native, amount(e.native))

	for _, block := range blocks {
		if block.Unverified == "" {
			e.t.Errorf("block %d has header fields that nobody knows and counts as verified", block.Height)
		}
	}
}

func testPoolSpent(e *env) {
	from := e.nextHeight()
	hash := e.pay(e.newAddress(), e.native, amount(e.native))

	var waiting []chain.Spend

	e.eventually("the payment in the pool", func() error {
		txs, err := as[chain.Mempool](e).Pool(e.ctx)
		e.must("Pool", err)

		at := slices.IndexFunc(txs, func(tx chain.PoolTx) bool { return tx.TxHash == hash })
		if at < 0 {
			return errors.New("it is not there")
		}

		waiting = txs[at].Spent

		return nil
	})

	if slices.ContainsFunc(waiting, func(s chain.Spend) bool { return s.Failed }) {
		e.t.Errorf("what waits has failed: %+v", waiting)
	}

	e.mine(1)
	e.sameUse("in the pool", waiting, e.scan(from), hash)
}

func testFinderSpent(e *env) {
	from := e.nextHeight()
	hash := e.pay(e.newAddress(), e.native, amount(e.native))

	var waiting chain.FoundTx

	if e.has(Mempool) {
		e.eventually("the waiting transaction", func() (err error) {
			waiting, err = e.find(hash)
			return err
		})
	}

	e.mine(1)
	blocks := e.scan(from)
	e.sameUse("looked up in its block", e.findIncluded(hash).Spent, blocks, hash)

	if e.has(Mempool) {
		e.sameUse("looked up in the pool", waiting.Spent, blocks, hash)
	}
}

func testFinderSpentFailed(e *env) {
	from := e.nextHeight()
	hash, err := e.Network.(control.FailingPayer).PayFailing(
		e.ctx,
		e.newAddress(),
		e.native,
		amount(e.native),
	)
	e.must("FailingPayer.PayFailing", err)
	e.settle()
	e.mine(1)

	found := e.findIncluded(hash)
	e.sameUse("a failed transaction", found.Spent, e.scan(from), hash)

	for _, spend := range found.Spent {
		if !spend.Failed {
			e.t.Errorf("%+v of a transaction that failed is not Failed", spend)
		}
	}
}

func testFinderVariable(e *env) {
	asset, to := e.variableAsset(), e.newAddress()
	hash, moved := e.payVariable(to, asset)

	if e.has(Mempool) {
		e.eventually("the waiting transaction", func() error {
			_, err := e.find(hash)
			return err
		})
	}

	e.mine(1)
	found := e.findIncluded(hash)
	e.expectTransfer("looked up", filterTransfers(found.Transfers, to), hash, to, asset, moved)
}
