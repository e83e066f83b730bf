//go:build unix

package tron_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// energySeller rents energy out: whoever pays its price has the energy at the second look.
type energySeller struct {
	h       *harness
	at      chain.Address
	price   chain.Amount // sun
	fails   error
	lost    bool // it takes the money and delivers nothing
	asked   map[chain.Address]uint64
	priced  int // offers
	pending int // looks at one order
}

func (s *energySeller) Seller() chain.Address { return s.at }

func (s *energySeller) Price(_ context.Context, to chain.Address, energy uint64) (chain.Amount, error) {
	s.asked[to] = energy
	s.priced++

	return s.price, s.fails
}

func (s *energySeller) Pending(_ context.Context, to chain.Address) (bool, error) {
	if s.lost {
		return false, nil
	}

	if s.pending++; s.pending%2 == 0 {
		s.h.control("stake", map[string]any{"address": testenv.TronHex(string(to)), "energy": s.asked[to]})
	}

	return true, nil
}

// TestEnergyOfAProvider releases tokens with energy that is bought of somebody, who takes a while to deliver it. What
// is dearer than to burn, not for sale, or never delivered, has the sweep topped up.
func TestEnergyOfAProvider(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*energySeller)
		bought int
		burns  bool // the sweep burns energy
	}{
		{"bought", func(*energySeller) {}, 1, false},
		{"dearer than to burn", func(s *energySeller) { s.price = chain.Units(1_000_000_000) }, 0, true},
		{"not for sale", func(s *energySeller) { s.price = chain.Amount{} }, 0, true},
		{"no answer", func(s *energySeller) { s.fails = errors.New("closed") }, 0, true},
		{"a seller that is a contract", func(s *energySeller) { s.at = s.h.usdt.Contract }, 0, true},
		{"never delivered", func(s *energySeller) { s.lost = true }, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			seller := &energySeller{price: chain.Units(50_000), asked: map[chain.Address]uint64{}}
			h := newHarness(t, testenv.TronOptions{SolidLag: 1}, func(config *tron.Config) {
				config.EnergyProvider = seller
			})
			seller.h, seller.at = h, h.wallet(1).Address
			c.change(seller)

			master := h.wallet(1_000)
			h.must(h.Fund(t.Context(), master.Address, h.usdt, chain.Units(1)))

			before, earned := h.balance(master.Address, h.native), h.balance(seller.at, h.native)

			var totals releaseTotals

			h.release(h.usdtRelease(master), &totals, func(chain.StepKind) {})

			spent := before.Sub(h.balance(master.Address, h.native))
			paid := h.balance(seller.at, h.native).Sub(earned)

			if spent != totals.burnt.Add(totals.left).Add(paid) ||
				paid != seller.price.Mul(uint64(c.bought)) {
				t.Errorf("spent %s sun, burnt %s, left %s, paid %s", spent, totals.burnt, totals.left, paid)
			}

			if totals.bought != c.bought || totals.transfer.IsZero() == c.burns {
				t.Errorf("%d purchases, and the sweep burns %s sun", totals.bought, totals.transfer)
			}
		})
	}
}

// TestOneSourceOfEnergy refuses a configuration with two.
func TestOneSourceOfEnergy(t *testing.T) {
	_, err := tron.New(tron.Config{
		Network:        tron.Nile,
		Nodes:          []tron.Node{{URL: "http://127.0.0.1:1"}},
		DelegateEnergy: true,
		EnergyProvider: &energySeller{},
	})
	wantFault(t, err, fault.Invalid, "config_invalid")
}
