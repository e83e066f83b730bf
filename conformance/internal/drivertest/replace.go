package drivertest

import (
	"errors"
	"fmt"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

var replacementTests = []testCase{
	{"ReplacementDisplaces", nil, testReplace},
	{"EstimateCoversWhatIsDisplaced", []Capability{FeeEstimator}, testReplaceEstimate},
	{"DeathIsReadAtFinality", nil, testReplaceDead},
	{"ReplacementWithinTheMaximum", nil, testReplaceMaxFee},
	{"ReplacedSweepStaysExact", nil, testReplaceSubtractFee},
	{"UnknownBytesAreReplaced", nil, testReplaceUnknown},
	{"ForkRevivesNothingTwice", []Capability{Forking}, testReplaceFork},
}

// replacementPair returns a transaction that waits in the pool and one that is to displace it.
func (e *env) replacementPair() (old, replacement chain.Signed) {
	e.t.Helper()
	from := e.wallet()
	order := e.order(from, e.native, e.newAddress(), amount(e.native))
	old = e.sign(order)
	e.broadcast(old)
	e.waitState(old, chain.TxPooled)
	order.Replaces = &old
	order.Outputs = []chain.Output{
		{To: e.newAddress(), AssetID: e.native.ID, Amount: amount(e.native).Add(chain.Units(1))},
	}

	replacement = e.sign(order)
	if replacement.TxHash == old.TxHash {
		e.t.Fatalf("the replacement of %s has its hash", old.TxHash)
	}

	if replacement.MaxFee.Cmp(old.MaxFee) <= 0 {
		e.t.Errorf(
			"the replacement may cost %s, the first one %s: it has to pay more",
			replacement.MaxFee, old.MaxFee,
		)
	}

	if e.has(Nonces) && replacement.Nonce != old.Nonce {
		e.t.Errorf("the replacement has nonce %d, the first one %d", replacement.Nonce, old.Nonce)
	}

	if e.has(CoinSource) && !sharesInput(old, replacement) {
		e.t.Errorf("the replacement %+v shares no coin with %+v", replacement.Inputs, old.Inputs)
	}

	return old, replacement
}

func sharesInput(a, b chain.Signed) bool {
	for _, x := range a.Inputs {
		for _, y := range b.Inputs {
			if x == y {
				return true
			}
		}
	}

	return false
}

// replacements is how many times a transaction is replaced: by then it offers more than any margin of a first estimate.
const replacements = 9

// testReplaceEstimate makes replacements of replacements, each within the estimate of its order.
func testReplaceEstimate(e *env) {
	order := e.order(e.wallet(), e.native, e.newAddress(), amount(e.native))
	last := e.sign(order)

	for range replacements {
		var err error

		order.Replaces = &last
		order.MaxFee, err = as[chain.FeeEstimator](e).EstimateFee(e.ctx, order)
		e.must("EstimateFee", err)

		last = e.sign(order)
	}
}

func testReplace(e *env) {
	old, replacement := e.replacementPair()
	e.broadcast(replacement)
	e.waitState(replacement, chain.TxPooled)
	e.mine(1)
	e.waitState(replacement, chain.TxIncluded)

	if got := e.balance(chain.Party{Address: old.Outputs[0].To}, e.native); !got.IsZero() {
		e.t.Errorf("the displaced transaction paid %s", got)
	}

	if out := replacement.Outputs[0]; e.balance(chain.Party{Address: out.To}, e.native) != out.Amount {
		e.t.Errorf("the replacement did not pay %s", out.Amount)
	}
}

func testReplaceDead(e *env) {
	old, replacement := e.replacementPair()
	if st := e.status(old); st.State != chain.TxPooled {
		e.t.Errorf("a transaction is %s before its replacement was sent", st.State)
	}

	e.include(replacement)

	e.eventually("the replacement to be final", func() error {
		// In this order: what is dead must have been displaced for good before.
		st, final := e.status(old), e.status(replacement).Final

		switch {
		case st.State == chain.TxDead && st.Reason != chain.ReasonConflict:
			e.t.Fatalf("the displaced transaction died of %q, want conflict", st.Reason)
		case st.State == chain.TxDead && !final:
			e.t.Fatalf("the displaced transaction is called dead before its replacement is final")
		case st.State == chain.TxIncluded:
			e.t.Fatalf("the displaced transaction is included as well: %+v", st)
		case final:
			return nil
		}

		e.mine(1)

		return errors.New("it is not")
	})

	st := e.status(replacement)
	if st.State != chain.TxIncluded || !st.Final {
		e.t.Errorf("the replacement is %+v", st)
	}

	if e.has(BlockScanner) {
		e.wantDisplaced(old, replacement, st.Block)
	}
}

// wantDisplaced fails unless the block of a replacement proves that what it displaced is dead: it shows that
// the replacement used up the nonce, or a coin, of the other.
func (e *env) wantDisplaced(old, replacement chain.Signed, at chain.Ref) {
	blocks, err := as[chain.BlockScanner](e).Blocks(e.ctx, at.Height, at.Height)
	e.must("Blocks", err)

	used := map[string]bool{}
	if e.has(Nonces) {
		used[chaindata.SpendKey(chain.Spend{Sender: old.From, Nonce: old.Nonce})] = true
	}

	for _, in := range old.Inputs {
		used[chaindata.SpendKey(chain.Spend{Outpoint: in})] = true
	}

	for _, spend := range blocks[0].Spent {
		if spend.By == replacement.TxHash && used[chaindata.SpendKey(spend)] {
			return
		}
	}

	e.t.Errorf(
		"block %d does not show that %s used up what %s needs: %+v",
		at.Height, replacement.TxHash, old.TxHash, blocks[0].Spent,
	)
}

func testReplaceMaxFee(e *env) {
	from := e.wallet()
	order := e.order(from, e.native, e.newAddress(), amount(e.native))
	old := e.sign(order)
	e.broadcast(old)
	e.waitState(old, chain.TxPooled)

	order.Replaces = &old
	order.MaxFee = old.MaxFee

	_, err := e.sender().Build(e.ctx, order)
	e.expectFault("Build of a replacement that may not pay more", err, fault.Limited, "fee_above_maximum")
}

func testReplaceSubtractFee(e *env) {
	from, to := e.party(chain.RoleDeposit), e.newAddress()
	sum := amount(e.native)
	e.fund(from, e.native, sum)
	order := e.complete(chain.Order{
		From:        from,
		Outputs:     []chain.Output{{To: to, AssetID: e.native.ID, Amount: sum}},
		SubtractFee: true,
	})
	old := e.sign(order)
	e.broadcast(old)
	e.waitState(old, chain.TxPooled)
	order.Replaces = &old
	replacement := e.sign(order)

	st := e.include(replacement)
	if got := e.balance(chain.Party{Address: to}, e.native).Add(st.Fee); got != sum {
		e.t.Errorf("the replaced sweep of %s delivered and paid %s", sum, got)
	}

	if left := e.balance(from, e.native); !left.IsZero() {
		e.t.Errorf("%s is left at the emptied address", left)
	}
}

// testReplaceUnknown replaces what a person acknowledged and a fork took away: of it no bytes are known, and no pool
// has them.
func testReplaceUnknown(e *env) {
	to := e.newAddress()
	order := e.order(e.wallet(), e.native, to, amount(e.native))
	unknown := e.sign(order)
	unknown.Raw = nil
	order.Replaces = &unknown

	replacement := e.sign(order)
	if e.has(Nonces) && replacement.Nonce != unknown.Nonce {
		e.t.Errorf("the replacement has nonce %d, the lost one %d", replacement.Nonce, unknown.Nonce)
	}

	if e.has(CoinSource) && !sharesInput(unknown, replacement) {
		e.t.Errorf("the replacement %+v shares no coin with %+v", replacement.Inputs, unknown.Inputs)
	}

	e.include(replacement)

	if got := e.balance(chain.Party{Address: to}, e.native); got != amount(e.native) {
		e.t.Errorf("%s arrived of %s", got, amount(e.native))
	}
}

func testReplaceFork(e *env) {
	old, replacement := e.replacementPair()
	e.include(replacement)
	e.fork(1)

	if st := e.status(old); st.State == chain.TxDead {
		e.t.Errorf("the displaced transaction is dead after the replacement's block left the chain: %+v", st)
	}

	e.include(replacement)

	if st := e.status(old); st.State == chain.TxIncluded {
		e.t.Error("both transactions are included")
	}
}

// testExpiry lets a transaction expire. Where transactions do not expire it tests nothing.
func testExpiry(e *env) {
	kept := e.sign(e.order(e.wallet(), e.native, e.newAddress(), amount(e.native)))

	lost := e.sign(e.order(e.wallet(), e.native, e.newAddress(), amount(e.native)))
	if lost.ValidToHeight == 0 && lost.ValidTo.IsZero() {
		return
	}

	expirer, ok := e.Network.(control.Expirer)
	if !ok {
		e.t.Fatalf(
			"transactions run out at height %d, %v: implement control.Expirer, or declare it absent",
			lost.ValidToHeight, lost.ValidTo,
		)
	}

	e.include(kept)
	e.mine(1)

	if st := e.status(lost); st.State != chain.TxUnknown {
		e.t.Errorf("a transaction that may still be sent is %+v", st)
	}

	e.must("Expirer.Expire", expirer.Expire(e.ctx, lost))
	e.settle()

	// Where blocks are read, they prove that what ran out is in none of them.
	if !e.has(BlockScanner) {
		e.wantExpired(lost)
	} else if st := e.status(lost); st.State == chain.TxIncluded || st.State == chain.TxPooled {
		e.t.Errorf("what ran out is %+v", st)
	}

	if st := e.status(kept); st.State != chain.TxIncluded {
		e.t.Errorf("a transaction that was included in time is %+v", st)
	}
}

// wantExpired fails unless Status proves that a transaction ran out, and not before it did at finality.
func (e *env) wantExpired(lost chain.Signed) {
	e.eventually("the death of what ran out", func() error {
		st := e.status(lost)
		if st.State == chain.TxDead {
			if st.Reason != chain.ReasonExpired {
				e.t.Fatalf("what ran out died of %q", st.Reason)
			}

			return nil
		}

		e.mine(1)

		return fmt.Errorf("it is %s", st.State)
	})

	head := e.head()
	if !head.Final.IsZero() && lost.ValidTo.IsZero() && head.Final.Height <= lost.ValidToHeight {
		e.t.Errorf(
			"it is called dead at the final height %d, but can be included up to %d",
			head.Final.Height, lost.ValidToHeight,
		)
	}
}
