//go:build unix

package tron_test

import (
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// A sweep whose energy became dearer between signature and block ran out of it, which its block shows. Planned again at
// the new price it is made, and what both cost is all that the master wallet spent.
func TestSweepIsPlannedAgainWhenEnergyBecameDearer(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	master := h.wallet(1_000)
	request := h.usdtRelease(master)
	before := h.balance(master.Address, h.native)

	steps, err := h.d.PlanSweep(t.Context(), request)
	h.must(err)

	burnt := h.include(h.sign(steps[0].Order)).Fee
	request.Done = []chain.StepKind{chain.StepTopUp}

	signed := h.sign(steps[1].Order)
	h.control("parameter", map[string]any{"key": "getEnergyFee", "value": 210})

	status := h.include(signed)
	burnt = burnt.Add(status.Fee)

	if ranOut, err := h.d.RanOutOfGas(t.Context(), signed); err != nil || !ranOut || !status.Reverted {
		t.Fatalf("the sweep is %+v, that it ran out of energy %t, %v", status, ranOut, err)
	}

	var totals releaseTotals

	h.release(request, &totals, func(chain.StepKind) {})

	spent := before.Sub(h.balance(master.Address, h.native))
	if spent != burnt.Add(totals.burnt).Add(totals.left) || spent.Less(totals.left.Mul(50)) ||
		totals.topUps != 1 {
		t.Errorf("spent %s sun, burnt %s and %+v", spent, burnt, totals)
	}

	if got := h.balance(master.Address, h.usdt); got != request.Amount {
		t.Errorf("the master wallet has %s USDT of %s", got, request.Amount)
	}
}

// Why a transaction was reverted is in the block that holds it, so that no node changes it alone.
func TestRevertedTransactionShowsWhetherItLackedEnergy(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	from, to := h.wallet(1_000), h.stranger()
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(10_000_000)))

	order := h.order(from, h.usdt, to, 1_000_000)

	var err error

	order.MaxFee, err = h.d.EstimateFee(t.Context(), order)
	h.must(err)

	works := h.sign(order)
	h.include(works)

	lacking := h.sign(order)
	h.control("energyfactor", map[string]any{"value": 10})
	h.include(lacking)
	h.control("energyfactor", map[string]any{"value": 1})

	refused := h.sign(order)
	h.must(h.Freeze(t.Context(), to, h.usdt))
	h.include(refused)

	liar := newProxy(t, h.TronNode)
	liar.forgeReceipts(func(_ string, receipt map[string]any) {
		if result, ok := receipt["receipt"].(map[string]any); ok && receipt["result"] == "FAILED" {
			result["result"] = "REVERT"
		}
	})

	for name, c := range map[string]struct {
		signed chain.Signed
		ranOut bool
	}{
		"it works":          {works, false},
		"it lacked energy":  {lacking, true},
		"a contract did it": {refused, false},
	} {
		for _, nodes := range [][]string{{h.URL}, {h.URL, h.URL}, {liar.URL, h.URL}, {h.URL, liar.URL}} {
			ranOut, err := h.driver(t, viaNodes(nodes...)).RanOutOfGas(t.Context(), c.signed)
			if err != nil || ranOut != c.ranOut {
				t.Errorf("%s: at %v %t, %v", name, nodes, ranOut, err)
			}
		}

		_, err := h.driver(t, viaNodes(h.URL, deadNode)).RanOutOfGas(t.Context(), c.signed)
		wantFault(t, err, fault.Unavailable, "node_unavailable")
	}

	unsent := h.sign(h.order(from, h.native, h.wallet(1).Address, 1))
	if _, err = h.d.RanOutOfGas(t.Context(), unsent); !errors.Is(err, fault.NotFound) {
		t.Errorf("of one in no block: %v", err)
	}
}
