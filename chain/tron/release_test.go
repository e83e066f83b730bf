//go:build unix

package tron_test

// What releases of tokens cost the master wallet, and what they leave behind.

import (
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// releaseTotals sums releases up, in sun.
type releaseTotals struct {
	burnt    chain.Amount // network fees of all steps
	transfer chain.Amount // network fees of the sweeps alone
	left     chain.Amount // at the deposit addresses
	topUps   int
	// delegations are taken back when the release is over, as internal/sweep does.
	delegations int
	bought      int // steps that pay for energy
}

// release carries out a token release as internal/sweep does, which plans anew after each step. between runs
// after each step.
func (h *harness) release(request chain.SweepRequest, totals *releaseTotals, between func(chain.StepKind)) {
	h.t.Helper()

	for range 8 {
		steps, err := h.d.PlanSweep(h.t.Context(), request)
		if fault.Code(err) == "energy_pending" {
			continue
		}

		h.must(err)

		step := steps[0]

		status := h.include(h.sign(step.Order))
		if status.Reverted {
			h.t.Fatalf("the %s of a release is reverted", step.Kind)
		}

		totals.burnt = totals.burnt.Add(status.Fee)

		if step.Kind == chain.StepDelegate && !chaindata.EnergyPrice(step.Order).IsZero() {
			totals.bought++
		} else if step.Kind == chain.StepDelegate {
			totals.delegations++

			takeBack := step.Order
			takeBack.Outputs = []chain.Output{step.Order.Outputs[0]}
			takeBack.Outputs[0].AssetID = chaindata.UndelegateEnergy

			defer func() { totals.burnt = totals.burnt.Add(h.include(h.sign(takeBack)).Fee) }()
		}

		if step.Kind == chain.StepTopUp {
			totals.topUps++
		}

		if step.Kind == chain.StepSweep {
			totals.transfer = totals.transfer.Add(status.Fee)
			totals.left = totals.left.Add(h.balance(request.Deposit.Address, h.native))

			return
		}

		if !slices.Contains(request.Done, step.Kind) {
			request.Done = append(request.Done, step.Kind)
		}

		between(step.Kind)
	}

	h.t.Fatal("a release does not end")
}

// usdtRelease returns the request that releases a new USDT deposit to the master wallet.
func (h *harness) usdtRelease(master chain.Party) chain.SweepRequest {
	h.t.Helper()

	request := chain.SweepRequest{
		Asset:   h.usdt,
		Deposit: h.party(),
		Master:  master,
		Amount:  chain.Units(20_000_000),
	}
	h.must(h.Fund(h.t.Context(), request.Deposit.Address, h.usdt, request.Amount))

	return request
}

// What 100 USDT releases take from the master wallet is their network fees and what is left at the deposit
// addresses, which is at most 2 % of it.
func TestTopUpsLeaveNothingBehind(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	master := h.wallet(10_000)
	h.must(h.Fund(t.Context(), master.Address, h.usdt, chain.Units(1)))

	before := h.balance(master.Address, h.native)

	var totals releaseTotals
	for range 100 {
		h.release(h.usdtRelease(master), &totals, func(chain.StepKind) {})
	}

	spent := before.Sub(h.balance(master.Address, h.native))
	if spent != totals.burnt.Add(totals.left) {
		t.Errorf("the master wallet spent %s sun; %s are burnt and %s left", spent, totals.burnt, totals.left)
	}

	if spent.Less(totals.left.Mul(50)) {
		t.Errorf("%s of %s sun, more than 2 %%, are left at deposit addresses", totals.left, spent)
	}

	if totals.topUps != 100 {
		t.Errorf("100 releases took %d top-ups", totals.topUps)
	}

	t.Logf("100 releases: spent %s sun, burnt %s, of which the transfers %s, left %s",
		spent, totals.burnt, totals.transfer, totals.left)
}

// 100 USDT releases with energy of the master wallet's stake burn nothing but bandwidth and the activation of the
// deposit addresses. The stake is whole again afterwards, and with bandwidth of its own an address that was used
// before is released for nothing.
func TestDelegatedEnergyBurnsNothing(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1}, func(c *tron.Config) { c.DelegateEnergy = true })
	master := h.wallet(10_000)
	h.must(h.Fund(t.Context(), master.Address, h.usdt, chain.Units(1)))
	h.control(
		"freeze",
		map[string]any{"address": testenv.TronHex(string(master.Address)), "value": 1_000_000_000_000},
	)

	before := h.balance(master.Address, h.native)

	var totals releaseTotals

	request := h.usdtRelease(master)

	for i := range 100 {
		if i > 0 {
			request = h.usdtRelease(master)
		}

		h.release(request, &totals, func(chain.StepKind) {})
	}

	spent := before.Sub(h.balance(master.Address, h.native))
	if spent != totals.burnt.Add(totals.left) || !totals.transfer.IsZero() ||
		spent.Less(totals.left.Mul(50)) {
		t.Errorf(
			"spent %s sun, burnt %s, the sweeps %s, left %s",
			spent,
			totals.burnt,
			totals.transfer,
			totals.left,
		)
	}

	if totals.delegations != 100 || totals.topUps != 100 {
		t.Errorf("100 releases took %d delegations and %d activations", totals.delegations, totals.topUps)
	}

	t.Logf("100 releases: spent %s sun, burnt %s, left %s", spent, totals.burnt, totals.left)

	// The address is active by now, a day has passed, and bandwidth is staked.
	h.control("recover", map[string]any{"address": testenv.TronHex(string(request.Deposit.Address))})
	h.control("stake", map[string]any{"address": testenv.TronHex(string(master.Address)), "net": 1_000_000})
	h.must(h.Fund(t.Context(), request.Deposit.Address, h.usdt, request.Amount))

	before, totals = h.balance(master.Address, h.native), releaseTotals{}
	h.release(request, &totals, func(chain.StepKind) {})

	if spent := before.Sub(h.balance(master.Address, h.native)); !spent.IsZero() || totals.delegations != 1 {
		t.Errorf("a release from an address that was used before burns %s sun", spent)
	}
}

// What a release costs the master wallet, in percent of what the transfer of its tokens burns by itself. The energy of
// the transfer is about that of USDT on the main network.
func TestCostOfARelease(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1, EnergyFactor: 4})
	delegating := h.driver(t, func(c *tron.Config) { c.DelegateEnergy = true })
	plain := h.d

	master := h.wallet(10_000)
	at := map[string]any{"address": testenv.TronHex(string(master.Address))}
	h.must(h.Fund(t.Context(), master.Address, h.usdt, chain.Units(1)))
	h.control("freeze", map[string]any{"address": at["address"], "value": 1_000_000_000_000})

	stakeBandwidth := func(chain.SweepRequest) {
		h.control("stake", map[string]any{"address": at["address"], "net": 1_000_000})
	}
	activate := func(r chain.SweepRequest) {
		h.must(h.Fund(t.Context(), r.Deposit.Address, h.native, chain.Units(1)))
	}

	var transfer chain.Amount

	for _, c := range []struct {
		name     string
		d        *tron.Driver
		prepare  func(chain.SweepRequest)
		low, top uint64 // percent
	}{
		{"topped up", plain, func(chain.SweepRequest) {}, 110, 120},
		{"delegated, the first of a day", delegating, func(chain.SweepRequest) {}, 16, 16},
		{"delegated", delegating, func(chain.SweepRequest) {}, 20, 30},
		{"delegated, bandwidth staked", delegating, stakeBandwidth, 10, 16},
		{"delegated, bandwidth staked, address active", delegating, activate, 0, 0},
	} {
		var totals releaseTotals

		request := h.usdtRelease(master)
		c.prepare(request)
		h.d = c.d

		before := h.balance(master.Address, h.native)
		h.release(request, &totals, func(chain.StepKind) {})
		spent := before.Sub(h.balance(master.Address, h.native))

		if transfer.IsZero() {
			transfer = totals.transfer
		}

		percent, _ := spent.Share(chain.Units(100), transfer).Uint64()
		if percent < c.low || percent > c.top {
			t.Errorf("%s: %d %%, want %d to %d", c.name, percent, c.low, c.top)
		}

		t.Logf("%s: a release costs %s sun, %d %% of the transfer's %s", c.name, spent, percent, transfer)
	}
}

// A stake that has not enough energy left is not delegated: the release is topped up, at planning and after a
// delegation that did not happen.
func TestTooSmallStakeIsToppedUp(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1}, func(c *tron.Config) { c.DelegateEnergy = true })
	master := h.wallet(10_000)

	var totals releaseTotals

	h.release(h.usdtRelease(master), &totals, func(chain.StepKind) {})

	if totals.delegations != 0 || totals.topUps != 1 || !totals.left.IsZero() {
		t.Errorf("without a stake: %+v", totals)
	}

	h.control(
		"freeze",
		map[string]any{"address": testenv.TronHex(string(master.Address)), "value": 1_000_000_000_000},
	)

	request := h.usdtRelease(master)
	request.Done = []chain.StepKind{chain.StepDelegate}
	totals = releaseTotals{}
	h.release(request, &totals, func(chain.StepKind) {})

	if totals.delegations != 0 || totals.topUps != 1 {
		t.Errorf("after a delegation that failed: %+v", totals)
	}

	// Planned before another release took the stake, it waits to be signed.
	request = h.usdtRelease(master)
	h.must(h.Fund(t.Context(), request.Deposit.Address, h.native, chain.Units(1)))

	steps, err := h.d.PlanSweep(t.Context(), request)
	h.must(err)
	h.control("freeze", map[string]any{"address": testenv.TronHex(string(master.Address)), "value": 0})

	_, err = h.d.Build(t.Context(), steps[0].Order)
	if wantFault(t, err, fault.State, "insufficient_stake"); steps[0].Kind != chain.StepDelegate {
		t.Errorf("the first step is a %s", steps[0].Kind)
	}
}

// A delegation in a block that is not solidified leaves the balances of both accounts readable.
func TestDelegationLeavesBalancesReadable(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 4}, func(c *tron.Config) { c.DelegateEnergy = true })
	master, receiver := h.wallet(100), h.wallet(1)
	h.mine(4)
	h.control(
		"freeze",
		map[string]any{"address": testenv.TronHex(string(master.Address)), "value": 10_000_000},
	)
	h.mine(5)

	order := h.order(master, h.native, receiver.Address, 5_000_000)
	order.Outputs[0].AssetID = chaindata.DelegateEnergy
	status := h.include(h.sign(order))

	if got := h.balance(
		master.Address,
		h.native,
	); got != chain.Units(100_000_000).Sub(status.Fee) ||
		len(status.Transfers) > 0 {
		t.Errorf(
			"the owner has %s sun, the delegation cost %s and moved %v",
			got,
			status.Fee,
			status.Transfers,
		)
	}

	if got := h.balance(receiver.Address, h.native); got != chain.Units(1_000_000) {
		t.Errorf("the receiver has %s sun", got)
	}
}

// A sweep that takes more energy after its top-up gets what is missing in a second one.
func TestDearerEnergyIsToppedUpAgain(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	master := h.wallet(1_000)
	before := h.balance(master.Address, h.native)

	var totals releaseTotals

	h.release(h.usdtRelease(master), &totals, func(chain.StepKind) {
		h.control("energyfactor", map[string]any{"value": 2})
	})

	spent := before.Sub(h.balance(master.Address, h.native))
	if totals.topUps != 2 || !totals.left.IsZero() || spent != totals.burnt {
		t.Errorf("%d top-ups, spent %s, burnt %s, left %s", totals.topUps, spent, totals.burnt, totals.left)
	}
}

// A deposit address whose daily allowance is used up or does not exist gets the bandwidth in its top-up.
func TestBandwidthIsToppedUpWithoutAllowance(t *testing.T) {
	h := newHarness(
		t, testenv.TronOptions{SolidLag: 1, Parameters: map[string]int64{"getFreeNetLimit": 0}},
	)
	master := h.wallet(1_000)
	before := h.balance(master.Address, h.native)

	var totals releaseTotals

	h.release(h.usdtRelease(master), &totals, func(chain.StepKind) {})

	spent := before.Sub(h.balance(master.Address, h.native))
	if totals.topUps != 1 || spent != totals.burnt.Add(totals.left) || spent.Less(totals.left.Mul(50)) {
		t.Errorf("%d top-ups, spent %s, burnt %s, left %s", totals.topUps, spent, totals.burnt, totals.left)
	}
}
