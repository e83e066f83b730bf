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
func (e *env) batchOrder(from chain.Party, asset chain.Asset, n int) chain.Order {
	e.t.Helper()

	order := e.order(from, asset, e.newAddress(), amount(asset))
	for i := len(order.Outputs); i < n; i++ {
		sum := amount(asset).Add(chain.Units(uint64(i)))

		out := chain.Output{To: e.newAddress(), AssetID: asset.ID, Amount: sum}
		if i == n-1 {
			out.To = order.Outputs[i-1].To
		}

		order.Outputs = append(order.Outputs, out)
	}

	order.MaxFee = order.MaxFee.Mul(uint64(n))

	return order
}

// batchSize returns how many outputs the suite puts into a transaction: 4, or as many as the driver
// can.
func (e *env) batchSize() int {
	return min(as[chain.Batcher](e).MaxOutputs(), 4)
}

// expectPaid checks that each destination of an order has what all the outputs for it come to.
func (e *env) expectPaid(order chain.Order, asset chain.Asset) {
	e.t.Helper()

	want := map[chain.Address]chain.Amount{}
	for _, out := range order.Outputs {
		want[out.To] = want[out.To].Add(out.Amount)
	}

	for to, sum := range want {
		if got := e.balance(chain.Party{Address: to}, asset); got != sum {
			e.t.Errorf("%s %s arrived at %s, want %s", got, asset.Symbol, to, sum)
		}
	}
}

func testBatchPays(e *env) {
	for _, asset := range e.assets() {
		from := e.wallet(asset)
		order := e.batchOrder(from, asset, e.batchSize())
		before := e.balance(from, e.native)

		tx := e.sign(order)
		if !slices.Equal(tx.Outputs, order.Outputs) {
			e.t.Fatalf("outputs %+v, the order has %+v", tx.Outputs, order.Outputs)
		}

		st := e.include(tx)
		e.expectIncluded(tx, st)
		e.expectPaid(order, asset)

		for i, out := range order.Outputs {
			n := 0

			for _, transfer := range st.Transfers {
				if transfer.To == out.To && transfer.Amount == out.Amount && transfer.AssetID == asset.ID {
					n++
				}
			}

			if n != 1 {
				e.t.Errorf("Status.Transfers has output %d %d times: %+v", i, n, st.Transfers)
			}
		}

		sum := st.Fee

		for _, out := range order.Outputs {
			if asset.Kind == chain.Native {
				sum = sum.Add(out.Amount)
			}
		}

		if got := before.Sub(e.balance(from, e.native)); got != sum {
			e.t.Errorf("the sender lost %s of the native coin, outputs and fee are %s", got, sum)
		}
	}
}

func testBatchReplaced(e *env) {
	order := e.batchOrder(e.wallet(), e.native, e.batchSize())
	old := e.sign(order)
	e.broadcast(old)
	e.waitState(old, chain.TxPooled)
	order.Replaces = &old

	replacement := e.sign(order)
	if !slices.Equal(replacement.Outputs, order.Outputs) {
		e.t.Fatalf("outputs %+v, the order has %+v", replacement.Outputs, order.Outputs)
	}

	e.include(replacement)
	e.expectPaid(order, e.native)
}

func testBatchTooMany(e *env) {
	maxOutputs := as[chain.Batcher](e).MaxOutputs()
	order := e.order(e.wallet(), e.native, e.newAddress(), amount(e.native))
	output := chain.Output{To: e.newAddress(), AssetID: e.native.ID, Amount: amount(e.native)}
	order.Outputs = slices.Repeat([]chain.Output{output}, maxOutputs+1)

	_, err := e.sender().Build(e.ctx, order)
	e.expectFault("Build of more outputs than MaxOutputs", err, fault.Unsupported, "")
}

func testBatchDestination(e *env) {
	order := e.batchOrder(e.wallet(), e.native, e.batchSize())
	order.Outputs[len(order.Outputs)-1].To = "not an address"
	_, err := e.sender().Build(e.ctx, order)
	e.expectFault(
		"Build with one malformed address of several",
		err, fault.Invalid, "destination_not_payable",
	)
}
