//go:build unix

package tron_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// forgeNewest has a node change its newest block, or its newest solidified one, and give it the id that it then has.
func forgeNewest(t *testing.T, p *proxy, path string, change func(header map[string]any)) {
	t.Helper()

	p.intercept(func(asked string, ask func() answer) answer {
		said := ask()
		if asked != path {
			return said
		}

		return edit(said, func(block map[string]any) {
			raw := block["block_header"].(map[string]any)["raw_data"].(map[string]any)
			change(raw)
			rehash(t, block, raw)
		})
	})
}

// rehash gives a block the id of its header.
func rehash(t *testing.T, block, header map[string]any) {
	t.Helper()

	text, err := json.Marshal(header)
	if err == nil {
		block["blockID"], err = tron.HeaderID(text)
	}

	if err != nil {
		t.Error(err)
	}
}

// later has the header of a block be from another time.
func later(d time.Duration) func(header map[string]any) {
	return func(header map[string]any) {
		header["timestamp"] = int64(header["timestamp"].(float64)) + d.Milliseconds()
	}
}

// What one node says of prices and accounts refuses no payment and prices none: it waits for a second node, also while
// that is down.
func TestOneNodeBuildsNoTransaction(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 2})
	from, to := h.wallet(1_000), h.wallet(1).Address
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(10_000_000)))

	coin := h.order(from, h.native, to, 5_000_000)
	tokens := h.order(from, h.usdt, to, 1_000_000)

	for _, order := range []*chain.Order{&coin, &tokens} {
		var err error

		order.MaxFee, err = h.d.EstimateFee(t.Context(), *order)
		h.must(err)
	}

	sweep := coin
	sweep.SubtractFee = true

	empty, contract := map[string]any{"balance": 0}, map[string]any{"type": "Contract"}

	for name, lie := range map[string]struct {
		order chain.Order
		forge func(p *proxy)
	}{
		"a high price":                 {tokens, forgePrice("getEnergyFee", 100, 1)},
		"much energy":                  {tokens, forgeEnergy(4, 1)},
		"an empty wallet":              {coin, forgeAccount(from.Address, empty)},
		"a contract":                   {coin, forgeAccount(to, contract)},
		"an account that is not there": {sweep, forgeAccount(to, nil)},
		"no allowance": {
			sweep,
			func(p *proxy) {
				p.forge("/wallet/getaccountresource", func(answer map[string]any) { delete(answer, "freeNetLimit") })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			liar := newProxy(t, h.TronNode)
			lie.forge(liar)

			honest, err := h.d.Build(t.Context(), lie.order)
			h.must(err)

			for _, c := range []struct {
				nodes []string
				code  string
			}{
				{nodes: []string{h.URL, h.URL}},
				{nodes: []string{liar.URL, h.URL}, code: "nodes_disagree"},
				{nodes: []string{h.URL, liar.URL}, code: "nodes_disagree"},
				{nodes: []string{liar.URL, h.URL, h.URL}},
				{nodes: []string{h.URL, deadNode}, code: "node_unavailable"},
				{nodes: []string{liar.URL, deadNode}, code: "node_unavailable"},
			} {
				unsigned, err := h.driver(t, viaNodes(c.nodes...)).Build(t.Context(), lie.order)
				if fault.Code(err) != c.code || err != nil && !errors.Is(err, fault.Unavailable) {
					t.Errorf("%v: %+v, %v; want code %q", c.nodes, unsigned, err, c.code)
				}

				if c.code == "" && c.nodes[0] != liar.URL && unsigned.Outputs[0] != honest.Outputs[0] {
					t.Errorf("%v: %+v, want %+v", c.nodes, unsigned.Outputs, honest.Outputs)
				}
			}
		})
	}
}

// A payment of tokens may burn most of what its order allows: an estimate of one node that is too low, or energy that
// becomes dearer before its block, does not have it fail, and what it does not use is not burnt.
func TestPaymentHasHeadroomForDearerEnergy(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	from, to := h.wallet(1_000), h.wallet(1).Address
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(10_000_000)))

	order := h.order(from, h.usdt, to, 1_000_000)

	var err error

	order.MaxFee, err = h.d.EstimateFee(t.Context(), order)
	h.must(err)

	liar := newProxy(t, h.TronNode)
	forgeEnergy(1, 4)(liar)

	for _, nodes := range [][]string{{h.URL}, {liar.URL, h.URL}} {
		h.d = h.driver(t, viaNodes(nodes...))
		signed := h.sign(order)
		h.d = h.driver(t)

		if signed.MaxFee.Mul(10).Less(order.MaxFee.Mul(8)) || !signed.MaxFee.Less(order.MaxFee) {
			t.Errorf("%v: it may cost %s of %s", nodes, signed.MaxFee, order.MaxFee)
		}

		if status := h.include(signed); status.Reverted || !status.Fee.Less(order.MaxFee) {
			t.Errorf("%v: it is %+v of %s", nodes, status, order.MaxFee)
		}
	}

	// The estimate has headroom for energy that is dearer by half.
	signed := h.sign(order)
	h.control("parameter", map[string]any{"key": "getEnergyFee", "value": 150})

	if status := h.include(signed); status.Reverted || order.MaxFee.Less(status.Fee) {
		t.Errorf("with dearer energy it is %+v of %s", status, order.MaxFee)
	}
}

// A transaction refers to no block that one node alone has.
func TestOneNodeNamesNoReferenceBlock(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	order := h.order(h.wallet(100), h.native, h.wallet(1).Address, 1_000_000)

	liar := newProxy(t, h.TronNode)
	forgeNewest(t, liar, "/walletsolidity/getnowblock", later(time.Second))

	_, err := h.driver(t, viaNodes(liar.URL, h.URL)).Build(t.Context(), order)
	wantFault(t, err, fault.Unavailable, "nodes_disagree")

	for _, nodes := range [][]string{{h.URL, liar.URL}, {liar.URL, h.URL, h.URL}} {
		h.d = h.driver(t, viaNodes(nodes...))
		h.include(h.sign(order))
	}
}

// The time of one node's newest block sets no expiration: it follows another node's or the clock. Where one alone is
// configured it is an hour after the clock at most.
func TestOneNodeSetsNoExpiration(t *testing.T) {
	const tenYears, validity = 10 * 365 * 24 * time.Hour, 5 * time.Minute

	h := newHarness(t, testenv.TronOptions{})
	order := h.order(h.wallet(100), h.native, h.wallet(1).Address, 1_000_000)
	newest := h.latestBlock().Time

	expires := func(clock time.Time, nodes ...string) time.Duration {
		h.d = h.driver(
			t,
			viaNodes(nodes...),
			func(c *tron.Config) { c.Now = func() time.Time { return clock } },
		)

		return h.sign(order).ValidTo.Sub(newest)
	}

	for _, lie := range []time.Duration{tenYears, 2 * time.Hour, 20 * time.Minute, -20 * time.Minute} {
		liar := newProxy(t, h.TronNode)
		forgeNewest(t, liar, "/wallet/getnowblock", later(lie))

		for _, nodes := range [][]string{{liar.URL, h.URL}, {h.URL, liar.URL}} {
			if got := expires(newest, nodes...); got != validity {
				t.Errorf("%v, %s ahead: it expires %s after the newest block", nodes, lie, got)
			}
		}

		if got := expires(newest, liar.URL); got != min(lie, time.Hour)+validity {
			t.Errorf("the only node, %s ahead: it expires %s after the newest block", lie, got)
		}
	}

	for _, wrong := range []time.Duration{-tenYears, tenYears} {
		if got := expires(newest.Add(wrong), h.URL, h.URL); got != validity {
			t.Errorf("a clock that is wrong by %s: it expires %s after the newest block", wrong, got)
		}
	}
}

// The fee of a payment is what two nodes estimate; there is none while the other one is down. A price above the highest
// one is none: the other node's counts.
func TestOneNodeEstimatesNoFee(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	from, to := h.wallet(1_000), h.stranger()
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(10_000_000)))

	coin, tokens := h.order(from, h.native, to, 5_000_000), h.order(from, h.usdt, to, 1_000_000)

	for name, lie := range map[string]struct {
		order chain.Order
		forge func(p *proxy)
		code  string
	}{
		"a low price":               {tokens, forgePrice("getEnergyFee", 1, 10), "nodes_disagree"},
		"a price above the highest": {tokens, forgePrice("getEnergyFee", 100, 1), ""},
		"a quarter of the energy":   {tokens, forgeEnergy(1, 4), "nodes_disagree"},
		"an account that is there":  {coin, forgeAccount(to, map[string]any{"balance": 1}), "nodes_disagree"},
	} {
		t.Run(name, func(t *testing.T) {
			liar := newProxy(t, h.TronNode)
			lie.forge(liar)

			honest, err := h.d.EstimateFee(t.Context(), lie.order)
			h.must(err)

			for _, c := range []struct {
				nodes []string
				code  string
			}{
				{nodes: []string{h.URL, h.URL}},
				{nodes: []string{liar.URL, h.URL}, code: lie.code},
				{nodes: []string{h.URL, liar.URL}, code: lie.code},
				{nodes: []string{liar.URL, h.URL, h.URL}},
				{nodes: []string{h.URL, deadNode}, code: "node_unavailable"},
			} {
				fee, err := h.driver(t, viaNodes(c.nodes...)).EstimateFee(t.Context(), lie.order)
				if fault.Code(err) != c.code || err != nil && !errors.Is(err, fault.Unavailable) ||
					c.code == "" && fee != honest {
					t.Errorf("%v: %s, %v; want %s and code %q", c.nodes, fee, err, honest, c.code)
				}
			}
		})
	}
}
