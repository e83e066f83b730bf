package conformance_test

import (
	"context"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/conformance"
)

// simControls are the controls of chain/sim as the suite wants them.
type simControls struct{ c *sim.Chain }

func (s simControls) NewAddress(context.Context) (chain.Address, error) { return s.c.NewAddress(), nil }

func (s simControls) Fund(_ context.Context, to chain.Address, a chain.Asset, amount chain.Amount) error {
	s.c.Fund(to, a.Symbol, amount)
	return nil
}

func (s simControls) Pay(_ context.Context, to chain.Address, a chain.Asset, amount chain.Amount) (string, error) {
	return s.c.Pay(to, a.Symbol, amount), nil
}

func (s simControls) Mine(_ context.Context, n int) error {
	s.c.Mine(n)
	return nil
}

func (s simControls) Settle(context.Context) error { return nil }

func (s simControls) Fork(_ context.Context, depth int, keep ...string) error {
	f := sim.Fork{Depth: uint64(depth), Fate: sim.Forget, Each: map[string]sim.Fate{}}
	for _, hash := range keep {
		f.Each[hash] = sim.Reinclude
	}
	s.c.Fork(f)
	return nil
}

func (s simControls) PayZero(_ context.Context, to chain.Address, a chain.Asset) (string, error) {
	return s.c.Pay(to, a.Symbol, chain.Amount{}), nil
}

func (s simControls) PayFailing(_ context.Context, to chain.Address, a chain.Asset, amount chain.Amount) (string, error) {
	return s.c.PayFailing(to, a.Symbol, amount), nil
}

func (s simControls) Freeze(_ context.Context, address chain.Address, a chain.Asset) error {
	s.c.Freeze(address, a.Symbol, true)
	return nil
}

func (s simControls) Prune(_ context.Context, below uint64) error {
	s.c.Prune(below)
	return nil
}

func simHarness(t *testing.T) conformance.DriverHarness {
	t.Helper()
	c := sim.New(sim.Config{})
	address := string(c.NewAddress())
	typo := strings.Replace(address, address[10:11], map[bool]string{true: "1", false: "0"}[address[10] == '0'], 1)
	return conformance.DriverHarness{
		Driver:  c,
		Network: simControls{c},
		Signer:  sim.NewSigner(1, nil),
		Absent: []conformance.Capability{
			conformance.AddressScanner, conformance.TokenAccounter, conformance.CoinSource,
		},
		Unreachable: sim.New(sim.Config{
			Intercept: func(context.Context, sim.Method) error { return sim.Unavailable() },
		}),
		BadAddresses: []string{typo, strings.ToUpper(address[:8]) + address[8:], address + " "},
		Spellings:    map[string]chain.Address{strings.ToUpper(address): chain.Address(address)},
	}
}

func TestDriverOfSim(t *testing.T) { conformance.TestDriver(t, simHarness) }

func TestSignerOfSim(t *testing.T) {
	conformance.TestSigner(t, func(*testing.T) conformance.SignerHarness {
		return conformance.SignerHarness{
			Signer: sim.NewSigner(7, nil), Network: "simnet",
			Keys: []chain.KeyRef{
				{Family: chain.Sim, Role: chain.RoleDeposit},
				{Family: chain.Sim, Role: chain.RoleDeposit, Index: 1},
				{Family: chain.Sim, Role: chain.RoleMaster},
				{Family: chain.Sim, Livemode: true, Role: chain.RoleMaster},
			},
			Unknown: []chain.KeyRef{{Family: chain.EVM, Role: chain.RoleDeposit}, {Family: chain.Sim, Role: "owner"}},
		}
	})
}
