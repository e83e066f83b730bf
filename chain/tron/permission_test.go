//go:build unix

package tron_test

import (
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// An account whose own key is left with an active permission pays by that permission, where it is configured, and
// not by another.
func TestActivePermissionSigns(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from, to := h.wallet(100), h.wallet(1).Address
	h.must(h.Fund(t.Context(), from.Address, h.usdt, chain.Units(5_000_000)))
	h.control("permission", map[string]any{"address": testenv.TronHex(string(from.Address)), "value": 3})

	coin, token := h.order(from, h.native, to, 2_000_000), h.order(from, h.usdt, to, 3_000_000)

	for _, id := range []int{0, 2} {
		h.d = h.driver(t, permissions(from.Address, id))

		for _, order := range []chain.Order{coin, token} {
			if err := h.d.Broadcast(t.Context(), h.sign(order)); !errors.Is(err, fault.Invalid) {
				t.Errorf("permission %d: %v", id, err)
			}
		}
	}

	h.d = h.driver(t, permissions(from.Address, 3))

	for _, order := range []chain.Order{coin, token} {
		if status := h.include(h.sign(order)); status.Reverted {
			t.Errorf("permission 3: %+v", status)
		}
	}

	if got := h.balance(to, h.native); got != chain.Units(3_000_000) {
		t.Errorf("the destination has %s sun after 1 and 2 TRX", got)
	}

	if got := h.balance(to, h.usdt); got != chain.Units(3_000_000) {
		t.Errorf("the destination has %s base units of 3 USDT", got)
	}
}

// permissions configures the permission of an account; 0 configures none.
func permissions(account chain.Address, id int) func(*tron.Config) {
	return func(c *tron.Config) {
		if id != 0 {
			c.Permissions = map[chain.Address]int{account: id}
		}
	}
}

// A permission is an active one of an account.
func TestPermissionsAreChecked(t *testing.T) {
	const account = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"

	for _, c := range []struct {
		account chain.Address
		id      int
		works   bool
	}{
		{account, 2, true},
		{account, 9, true},
		{account, 0, false},
		{account, 1, false}, // of witnesses
		{account, 10, false},
		{"account", 2, false},
	} {
		_, err := tron.New(tron.Config{
			Network:     tron.Mainnet,
			Nodes:       []tron.Node{{URL: "http://127.0.0.1:1"}},
			Permissions: map[chain.Address]int{c.account: c.id},
		})
		if (err == nil) != c.works || (err != nil && fault.Code(err) != "config_invalid") {
			t.Errorf("permission %d of %q: %v", c.id, c.account, err)
		}
	}
}
