//go:build unix

package tron_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/twonodes"
)

// One node of two that lies about a price or about energy costs nothing: the transaction waits for nodes that agree. A
// single node costs at most what the highest prices allow.
func TestWhatALyingNodeMayCost(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	from := h.wallet(100_000)
	known, deposit := h.wallet(1).Address, h.wallet(100)
	fresh := h.stranger()
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(10_000_000)))

	pay := func(order chain.Order) func(d *tron.Driver) (chain.Amount, error) {
		return func(d *tron.Driver) (chain.Amount, error) {
			most, err := d.EstimateFee(t.Context(), order)
			if err != nil {
				return most, err
			}

			order.MaxFee = most
			unsigned, err := d.Build(t.Context(), order)

			return unsigned.MaxFee, err
		}
	}
	kinds := map[string]func(d *tron.Driver) (chain.Amount, error){
		"payout of TRX":                  pay(h.order(from, h.native, known, 1_000)),
		"payout of TRX to a new account": pay(h.order(from, h.native, fresh, 1_000)),
		"payout of tokens":               pay(h.order(from, h.usdt, known, 1_000)),
		"release of TRX": func(d *tron.Driver) (chain.Amount, error) {
			steps, err := d.PlanSweep(t.Context(), chain.SweepRequest{
				Asset:   h.native,
				Deposit: deposit,
				Master:  from,
				Amount:  chain.Units(100_000_000),
			})
			if err != nil {
				return chain.Amount{}, err
			}

			return steps[len(steps)-1].Order.MaxFee, nil
		},
	}

	honest := map[string]chain.Amount{}

	for kind, cost := range kinds {
		var err error

		honest[kind], err = cost(h.driver(t))
		h.must(err)
	}

	const newAccountFee = "getCreateNewAccountFeeInSystemContract"

	lies := map[string]func(p *proxy){
		"energy at 9 times its price":          forgePrice("getEnergyFee", 9, 1),
		"energy at 1,000 times its price":      forgePrice("getEnergyFee", 1_000, 1),
		"9 times the energy":                   forgeEnergy(9, 1),
		"1,000 times the energy":               forgeEnergy(1_000, 1),
		"bytes at 9 times their price":         forgePrice("getTransactionFee", 9, 1),
		"bytes at 1,000 times their price":     forgePrice("getTransactionFee", 1_000, 1),
		"accounts at 9 times their price":      forgePrice(newAccountFee, 9, 1),
		"accounts at 1,000 times their price":  forgePrice(newAccountFee, 1_000, 1),
		"accounts at 0.9 times their price":    forgePrice(newAccountFee, 9, 10),
		"energy at a tenth of its price":       forgePrice("getEnergyFee", 1, 10),
		"a tenth of the energy that it takes":  forgeEnergy(1, 10),
		"the wallet's stake gives much energy": forgeStake,
	}

	for _, lie := range slices.Sorted(maps.Keys(lies)) {
		liar := newProxy(t, h.TronNode)
		lies[lie](liar)

		nodes := map[string][]string{
			"alone":         {liar.URL},
			"first of two":  {liar.URL, h.URL},
			"second of two": {h.URL, liar.URL},
		}

		for _, place := range slices.Sorted(maps.Keys(nodes)) {
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				d := h.driver(t, viaNodes(nodes[place]...))
				cost, err := kinds[kind](d)
				t.Logf("%-37s %-14s %-31s at most %-12s honest %-12s Health: %-14s %v",
					lie, place, kind, cost, honest[kind], twonodes.Named(d), err)

				most := honest[kind]
				if place == "alone" {
					most = most.Mul(10)
				}

				switch code := fault.Code(err); {
				case err != nil && code != "nodes_disagree" && code != "fee_above_maximum":
					t.Errorf("%s, %s, %s: %v", lie, place, kind, err)
				case err == nil && most.Less(cost):
					t.Errorf("%s, %s, %s: %s, an honest node costs %s", lie, place, kind, cost, honest[kind])
				}
			}
		}
	}
}
