package conformance_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/conformance"
)

// windowsNetwork is what sim.Windows and sim.AddressWindows have in common.
type windowsNetwork interface {
	chain.Driver
	NewAddress() chain.Address
	Fund(to chain.Address, symbol string, amount chain.Amount)
	Pay(to chain.Address, symbol string, amount chain.Amount) string
	PayFailing(to chain.Address, symbol string, amount chain.Amount) string
	Mine(n int) chain.Ref
	Fork(f sim.Fork) chain.Ref
	Freeze(address chain.Address, symbol string, frozen bool)
	Prune(below uint64)
	Advance(d time.Duration)
	Now() time.Time
}

// windowsControls are the controls of these networks as the suite wants them.
type windowsControls struct{ w windowsNetwork }

func (c windowsControls) NewAddress(context.Context) (chain.Address, error) {
	return c.w.NewAddress(), nil
}

func (c windowsControls) Fund(_ context.Context, to chain.Address, a chain.Asset, amount chain.Amount) error {
	c.w.Fund(to, a.Symbol, amount)
	return nil
}

func (c windowsControls) Pay(
	_ context.Context,
	to chain.Address,
	a chain.Asset,
	amount chain.Amount,
) (string, error) {
	return c.w.Pay(to, a.Symbol, amount), nil
}

func (c windowsControls) PayZero(_ context.Context, to chain.Address, a chain.Asset) (string, error) {
	return c.w.Pay(to, a.Symbol, chain.Amount{}), nil
}

func (c windowsControls) PayFailing(
	_ context.Context,
	to chain.Address,
	a chain.Asset,
	amount chain.Amount,
) (string, error) {
	return c.w.PayFailing(to, a.Symbol, amount), nil
}

func (c windowsControls) Mine(_ context.Context, n int) error {
	c.w.Mine(n)
	return nil
}

func (c windowsControls) Settle(context.Context) error { return nil }

func (c windowsControls) Fork(_ context.Context, depth int, keep ...string) error {
	c.w.Fork(keepingFork(depth, keep))
	return nil
}

func (c windowsControls) Freeze(_ context.Context, address chain.Address, a chain.Asset) error {
	c.w.Freeze(address, a.Symbol, true)
	return nil
}

func (c windowsControls) Prune(_ context.Context, below uint64) error {
	c.w.Prune(below)
	return nil
}

func (c windowsControls) Expire(_ context.Context, tx chain.Signed) error {
	if past := tx.ValidTo.Sub(c.w.Now()); past > 0 {
		c.w.Advance(past + time.Second)
	}

	// Either bound ends the window; the suite expects the height's at the final block.
	const finalDepth = 2
	for tip := c.w.Mine(1); tip.Height <= tx.ValidToHeight+finalDepth; tip = c.w.Mine(1) {
	}

	return nil
}

func windowsHarness(
	w, unreachable windowsNetwork,
	absent ...conformance.Capability,
) conformance.DriverHarness {
	h := conformance.DriverHarness{
		Driver:  w,
		Network: windowsControls{w},
		Signer:  sim.NewSigner(1, nil),
		Absent: append([]conformance.Capability{
			conformance.Mempool,
			conformance.TokenAccounter,
			conformance.CoinSource,
			conformance.Bumper,
			conformance.CheapPayments,
			conformance.Nonces,
			conformance.Batcher,
			conformance.Replacement,
			conformance.WrongNode, // driver and node are one
		}, absent...),
		Unreachable: unreachable,
	}
	simAddresses(&h, w.NewAddress())

	return h
}

func TestDriverOfWindows(t *testing.T) {
	unreachable := sim.WindowsConfig{
		Intercept: func(context.Context, sim.Method) error { return sim.Unavailable() },
	}

	for name, config := range map[string]sim.WindowsConfig{
		"ByHeight": {},
		"ByTime":   {ValidFor: time.Minute},
		"ByBoth":   {ValidBlocks: 20, ValidFor: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.TestDriver(t, func(*testing.T) conformance.DriverHarness {
				return windowsHarness(
					sim.NewWindows(config), sim.NewWindows(unreachable), conformance.AddressScanner,
				)
			})
		})
	}

	t.Run("ByAddress", func(t *testing.T) {
		conformance.TestDriver(t, func(*testing.T) conformance.DriverHarness {
			return windowsHarness(
				sim.NewAddressWindows(sim.WindowsConfig{}), sim.NewAddressWindows(unreachable),
				conformance.BlockScanner,
			)
		})
	})
}
