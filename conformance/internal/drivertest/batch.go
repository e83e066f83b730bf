package drivertest

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

// batchOrder orders n payments of different amounts, the last two of which go to one destination.
func (e *env) batchOrder(from chain.Party, a chain.Asset, n int) chain.Order {
	e.t.Helper()

	o := e.order(from, a, e.newAddress(), amount(a))
	for i := len(o.Outputs); i < n; i++ {
		out := chain.Output{To: e.newAddress(), AssetID: a.ID, Amount: amount(a).Add(chain.Units(uint64(i)))}
		if i == n-1 {
			out.To = o.Outputs[i-1].To
		}

		o.Outputs = append(o.Outputs, out)
	}

	o.MaxFee = o.MaxFee.Mul(uint64(n))

	return o
}

// batchSize returns how many outputs the suite puts into a transaction: 4, or as many as the driver
// can.
func (e *env) batchSize() int {
	return min(as[chain.Batcher](e).MaxOutputs(), 4)
}

// expectPaid checks that each destination of an order has what all the outputs for it come to.
func (e *env) expectPaid(o chain.Order, a chain.Asset) {
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
		o := e.batchOrder(from, a, e.batchSize())
		before := e.balance(from, e.native)

		tx := e.sign(o)
		if !slices.Equal(tx.Outputs, o.Outputs) {
			e.t.Fatalf("outputs %+v, the order has %+v", tx.Outputs, o.Outputs)
		}

		st := e.include(tx)
		e.expectIncluded(tx, st)
		e.expectPaid(o, a)

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
	o := e.batchOrder(e.wallet(), e.native, e.batchSize())
	old := e.sign(o)
	e.broadcast(old)
	e.waitState(old, chain.TxPooled)
	o.Replaces = &old

	replacement := e.sign(o)
	if !slices.Equal(replacement.Outputs, o.Outputs) {
		e.t.Fatalf("outputs %+v, the order has %+v", replacement.Outputs, o.Outputs)
	}

	e.include(replacement)
	e.expectPaid(o, e.native)
}

func testBatchTooMany(e *env) {
	maxOutputs := as[chain.Batcher](e).MaxOutputs()
	o := e.order(e.wallet(), e.native, e.newAddress(), amount(e.native))
	output := chain.Output{To: e.newAddress(), AssetID: e.native.ID, Amount: amount(e.native)}
	o.Outputs = slices.Repeat([]chain.Output{output}, maxOutputs+1)

	_, err := e.sender().Build(e.ctx, o)
	e.expectFault("Build of more outputs than MaxOutputs", err, fault.Unsupported, "")
}

func testBatchDestination(e *env) {
	o := e.batchOrder(e.wallet(), e.native, e.batchSize())
	o.Outputs[len(o.Outputs)-1].To = "not an address"
	_, err := e.sender().Build(e.ctx, o)
	e.expectFault("Build with one malformed address of several", err, fault.Invalid, "destination_not_payable")
}
