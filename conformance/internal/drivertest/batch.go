package drivertest

// Batcher: several destinations in one transaction.

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var batchTests = []testCase{
	{"EveryOutputIsPaid", nil, testBatchPays},
	{"ReplacementPaysTheSame", []Capability{Replacement}, testBatchReplaced},
	{"MoreThanMaxOutputsIsUnsupported", nil, testBatchTooMany},
	{"OneBadDestinationRefusesAll", nil, testBatchDestination},
}

// batch orders n payments of different amounts, the last two of which go to one destination.
func (e *env) batch(from chain.Party, a chain.Asset, n int) chain.Order {
	e.t.Helper()

	o := e.order(from, a, e.stranger(), amount(a))
	for i := len(o.Outputs); i < n; i++ {
		out := chain.Output{To: e.stranger(), AssetID: a.ID, Amount: amount(a).Add(chain.Units(uint64(i)))}
		if i == n-1 {
			out.To = o.Outputs[i-1].To
		}

		o.Outputs = append(o.Outputs, out)
	}

	o.MaxFee = o.MaxFee.Mul(uint64(n))

	return o
}

// most is how many outputs the suite puts into a transaction: enough to tell, and no more than the
// driver can.
func (e *env) most() int {
	return min(as[chain.Batcher](e).MaxOutputs(), 4)
}

// paid checks that each destination of an order has what all the outputs for it come to.
func (e *env) paid(o chain.Order, a chain.Asset) {
	e.t.Helper()

	want := map[chain.Address]chain.Amount{}
	for _, out := range o.Outputs {
		want[out.To] = want[out.To].Add(out.Amount)
	}

	for to, sum := range want {
		if got := e.balance(chain.Party{Address: to}, a); got != sum {
			e.t.Errorf("%s %s arrived at %s, want %s", got, a.Symbol, to, sum)
		}
	}
}

func testBatchPays(e *env) {
	for _, a := range e.assets() {
		from := e.wallet(a)
		o := e.batch(from, a, e.most())
		before := e.balance(from, e.native)

		tx := e.sign(o)
		if !slices.Equal(tx.Outputs, o.Outputs) {
			e.t.Fatalf("outputs %+v, the order has %+v", tx.Outputs, o.Outputs)
		}

		st := e.include(tx)
		e.checkIncluded(tx, st)
		e.paid(o, a)

		for i, out := range o.Outputs {
			n := 0

			for _, m := range st.Transfers {
				if m.To == out.To && m.Amount == out.Amount && m.AssetID == a.ID {
					n++
				}
			}

			if n != 1 {
				e.t.Errorf("Status.Transfers has output %d %d times: %+v", i, n, st.Transfers)
			}
		}

		sum := st.Fee

		for _, out := range o.Outputs {
			if a.Kind == chain.Native {
				sum = sum.Add(out.Amount)
			}
		}

		if got := before.Sub(e.balance(from, e.native)); got != sum {
			e.t.Errorf("the sender lost %s of the native coin, outputs and fee are %s", got, sum)
		}
	}
}

func testBatchReplaced(e *env) {
	o := e.batch(e.wallet(), e.native, e.most())
	old := e.sign(o)
	e.broadcast(old)
	e.state(old, chain.TxPooled)
	o.Replaces = &old

	replacement := e.sign(o)
	if !slices.Equal(replacement.Outputs, o.Outputs) {
		e.t.Fatalf("outputs %+v, the order has %+v", replacement.Outputs, o.Outputs)
	}

	e.include(replacement)
	e.paid(o, e.native)
}

func testBatchTooMany(e *env) {
	most := as[chain.Batcher](e).MaxOutputs()
	o := e.order(e.wallet(), e.native, e.stranger(), amount(e.native))
	o.Outputs = slices.Repeat(
		[]chain.Output{{To: e.stranger(), AssetID: e.native.ID, Amount: amount(e.native)}}, most+1,
	)
	_, err := e.sender().Build(e.ctx, o)
	e.wantFault("Build of more outputs than MaxOutputs", err, fault.Unsupported, "")
}

func testBatchDestination(e *env) {
	o := e.batch(e.wallet(), e.native, e.most())
	o.Outputs[len(o.Outputs)-1].To = "not an address"
	_, err := e.sender().Build(e.ctx, o)
	e.wantFault("Build with one malformed address of several", err, fault.Invalid, "destination_not_payable")
}
