//go:build unix

package tron_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// A chain without a price of energy charges 100 sun, as nodes do: tokens are paid out at that.
func TestEnergyWithoutAPriceCostsWhatNodesCharge(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1, Parameters: map[string]int64{"getEnergyFee": 0}})
	from, to := h.wallet(1_000), h.stranger()
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(10_000_000)))

	before := h.balance(from.Address, h.native)
	status := h.include(h.sign(h.order(from, h.usdt, to, 1_000_000)))

	if status.Reverted || h.balance(to, h.usdt) != chain.Units(1_000_000) {
		t.Fatalf("the payout is %+v", status)
	}

	if left := h.balance(
		from.Address,
		h.native,
	); before.Sub(left) != status.Fee ||
		status.Fee.Less(chain.Units(1_000_000)) {
		t.Errorf("it cost %s sun, %s are said to be burnt", before.Sub(left), status.Fee)
	}
}
