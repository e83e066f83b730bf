//go:build unix

package tron_test

import (
	"errors"
	"maps"
	"reflect"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// forge has a node change its answers to one request.
func (p *proxy) forge(path string, change func(answer map[string]any)) {
	p.intercept(func(asked string, ask func() answer) answer {
		said := ask()
		if asked == path {
			said = edit(said, change)
		}

		return said
	})
}

// forgePrice has a node multiply a chain parameter, and then divide it.
func forgePrice(key string, by, of float64) func(p *proxy) {
	return func(p *proxy) {
		p.forge("/wallet/getchainparameters", func(answer map[string]any) {
			for _, param := range answer["chainParameter"].([]any) {
				if param := param.(map[string]any); param["key"] == key {
					param["value"] = int64(param["value"].(float64) * by / of)
				}
			}
		})
	}
}

// forgeEnergy has a node say that calls use another share of their energy.
func forgeEnergy(by, of float64) func(p *proxy) {
	return func(p *proxy) {
		p.forge("/wallet/triggerconstantcontract", func(answer map[string]any) {
			if used, ok := answer["energy_used"].(float64); ok {
				answer["energy_used"] = int64(used * by / of)
			}
		})
	}
}

// forgeStake has a node make energy of accounts up.
func forgeStake(p *proxy) {
	p.forge("/wallet/getaccountresource", func(answer map[string]any) { answer["EnergyLimit"] = 10_000_000 })
}

// forgeAccount has a node say something else of an account: nil that it does not exist. Any account that does not exist
// is taken for it.
func forgeAccount(of chain.Address, account map[string]any) func(p *proxy) {
	hex := testenv.TronHex(string(of))

	return func(p *proxy) {
		p.forge("/wallet/getaccount", func(answer map[string]any) {
			if answer["address"] != hex && len(answer) > 0 {
				return
			}

			clear(answer)

			if account != nil {
				maps.Copy(answer, account)
				answer["address"] = hex
			}
		})
	}
}

// What one node says of prices, energy, resources and accounts plans no release: it waits until two nodes lead to the
// same plan.
func TestOneNodePlansNoRelease(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	master := h.wallet(1_000)
	tokens := h.usdtRelease(master)
	coin := chain.SweepRequest{
		Asset:   h.native,
		Deposit: h.wallet(10),
		Master:  master,
		Amount:  chain.Units(10_000_000),
	}

	for name, lie := range map[string]struct {
		forge func(p *proxy)
		of    chain.SweepRequest
	}{
		"a quarter of the energy":   {forgeEnergy(1, 4), tokens},
		"a low price":               {forgePrice("getEnergyFee", 1, 10), tokens},
		"a high price":              {forgePrice("getEnergyFee", 100, 1), tokens},
		"a high price of bandwidth": {forgePrice("getTransactionFee", 100, 1), coin},
		"energy that is not there":  {forgeStake, tokens},
		"an account that is not there": {
			forgeAccount(tokens.Deposit.Address, map[string]any{"balance": 0}),
			tokens,
		},
		"less than there is": {forgeAccount(coin.Deposit.Address, map[string]any{"balance": 1}), coin},
	} {
		t.Run(name, func(t *testing.T) {
			liar := newProxy(t, h.TronNode)
			lie.forge(liar)

			honest, err := h.d.PlanSweep(t.Context(), lie.of)
			h.must(err)

			for _, c := range []struct {
				nodes []string
				code  string
			}{
				{nodes: []string{h.URL, h.URL}},
				{nodes: []string{liar.URL, h.URL}, code: "nodes_disagree"},
				{nodes: []string{h.URL, liar.URL}, code: "nodes_disagree"},
				{nodes: []string{liar.URL, h.URL, h.URL}},
				{nodes: []string{h.URL, liar.URL, h.URL}},
				{nodes: []string{deadNode, liar.URL, h.URL}, code: "nodes_disagree"},
				{nodes: []string{liar.URL, deadNode}, code: "node_unavailable"},
			} {
				steps, err := h.driver(t, viaNodes(c.nodes...)).PlanSweep(t.Context(), lie.of)
				if fault.Code(err) != c.code || err != nil && !errors.Is(err, fault.Unavailable) {
					t.Errorf("%v: %+v, %v; want code %q", c.nodes, steps, err, c.code)
				}

				if c.code == "" && !reflect.DeepEqual(steps, honest) {
					t.Errorf("%v: %+v, want %+v", c.nodes, steps, honest)
				}
			}
		})
	}
}

// Energy that one node makes up, of the address or of the stake, or hides, plans no delegation and no purchase either.
// A provider is asked once for what two nodes say.
func TestOneNodeBringsNoEnergy(t *testing.T) {
	seller := &energySeller{price: chain.Units(50_000), asked: map[chain.Address]uint64{}}
	sells := func(c *tron.Config) { c.EnergyProvider = seller }
	delegates := func(c *tron.Config) { c.DelegateEnergy = true }

	h := newHarness(t, testenv.TronOptions{SolidLag: 1}, delegates)
	seller.h, seller.at = h, h.wallet(1).Address
	master := h.wallet(10_000)
	request := h.usdtRelease(master)

	h.control(
		"freeze",
		map[string]any{"address": testenv.TronHex(string(master.Address)), "value": 1_000_000_000_000},
	)

	for name, c := range map[string]struct {
		source func(*tron.Config)
		forge  func(p *proxy)
	}{
		"delegated, made up":  {delegates, forgeStake},
		"delegated, too much": {delegates, forgeEnergy(4, 1)},
		"delegated, no stake": {
			delegates,
			func(p *proxy) {
				p.forge("/wallet/getcandelegatedmaxsize", func(answer map[string]any) { answer["max_size"] = 0 })
			},
		},
		"bought, made up":  {sells, forgeStake},
		"bought, too much": {sells, forgeEnergy(4, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			liar := newProxy(t, h.TronNode)
			c.forge(liar)

			for _, nodes := range [][]string{{liar.URL, h.URL}, {h.URL, liar.URL}} {
				_, err := h.driver(t, viaNodes(nodes...), c.source).PlanSweep(t.Context(), request)
				wantFault(t, err, fault.Unavailable, "nodes_disagree")
			}

			before := seller.priced

			steps, err := h.driver(t, viaNodes(h.URL, h.URL), c.source).PlanSweep(t.Context(), request)
			h.must(err)

			if len(steps) != 3 || steps[1].Kind != chain.StepDelegate {
				t.Fatalf("the plan is %+v", steps)
			}

			if bought := !chaindata.EnergyPrice(steps[1].Order).
				IsZero(); bought &&
				seller.priced != before+1 {
				t.Errorf("the provider was asked %d times for one plan", seller.priced-before)
			}
		})
	}
}
