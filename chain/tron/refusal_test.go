//go:build unix

package tron_test

import (
	"bytes"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// A destination that one node of two calls a contract is payable while the other one says what it is.
func TestOneNodeRefusesNoDestination(t *testing.T) {
	const unreachable = "http://127.0.0.1:1"

	h := newHarness(t, testenv.TronOptions{})
	from, honest, contract := h.wallet(1_000), h.wallet(1).Address, chain.Address(h.forwarder)

	liar := newProxy(t, h.TronNode)
	liar.intercept(func(path string, ask func() answer) answer {
		said := ask()
		if path == "/wallet/getaccount" {
			said.body = bytes.Replace(said.body, []byte("{"), []byte(`{"type":"Contract",`), 1)
		}

		return said
	})

	const refused, alone = "destination_not_payable", "node_unavailable"

	for name, c := range map[string]struct {
		nodes []string
		order chain.Order
		code  string
	}{
		"the liar first":        {[]string{liar.URL, h.URL}, h.order(from, h.native, honest, 5_000_000), ""},
		"the liar second":       {[]string{h.URL, liar.URL}, h.order(from, h.native, honest, 5_000_000), ""},
		"two nodes refuse":      {[]string{liar.URL, liar.URL}, h.order(from, h.native, honest, 5_000_000), refused},
		"the other one is down": {[]string{liar.URL, unreachable}, h.order(from, h.native, honest, 5_000_000), alone},
		"one node alone":        {[]string{liar.URL}, h.order(from, h.native, honest, 5_000_000), refused},
		"a contract":            {[]string{liar.URL, h.URL}, h.order(from, h.native, contract, 5_000_000), refused},
	} {
		fee, err := h.driver(t, viaNodes(c.nodes...)).EstimateFee(t.Context(), c.order)

		if fault.Code(err) != c.code {
			t.Errorf("%s: %v, want code %q", name, err, c.code)
		}

		if err == nil && fee.IsZero() {
			t.Errorf("%s: no fee", name)
		}
	}
}
