package conformance_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// windowsControls are the controls of sim.Windows as the suite wants them.
type windowsControls struct{ w *sim.Windows }

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

// noncedControls are the controls of a network that was made with nonce accounts of every address.
type noncedControls struct {
	windowsControls
	opened map[chain.Address]int
}

func (c noncedControls) OpenNonce(_ context.Context, owner chain.Address) (chain.Address, error) {
	next := c.opened[owner]
	c.opened[owner]++

	return c.w.NonceAccounts(owner)[next], nil
}

func TestDriverOfWindows(t *testing.T) {
	for name, test := range map[string]struct {
		config sim.WindowsConfig
		driver func(w *sim.Windows) chain.Driver
		absent string
	}{
		"ByHeight": {sim.WindowsConfig{}, byBlock, "chain.AddressScanner"},
		"ByTime":   {sim.WindowsConfig{ValidFor: time.Minute}, byBlock, "chain.AddressScanner"},
		"ByBoth": {
			sim.WindowsConfig{ValidBlocks: 20, ValidFor: time.Minute},
			byBlock,
			"chain.AddressScanner",
		},
		"ByAddress":          {sim.WindowsConfig{}, (*sim.Windows).ByAddress, "chain.BlockScanner"},
		"ByHeightWithNonces": {sim.WindowsConfig{NonceAccounts: 2}, byBlock, "chain.AddressScanner"},
		"ByAddressWithNonces": {
			sim.WindowsConfig{NonceAccounts: 2},
			(*sim.Windows).ByAddress,
			"chain.BlockScanner",
		},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.TestDriver(t, func(*testing.T) conformance.DriverHarness {
				w := sim.NewWindows(test.config)
				unreachable := sim.NewWindows(sim.WindowsConfig{
					NonceAccounts: test.config.NonceAccounts,
					Intercept:     func(context.Context, sim.Method) error { return sim.Unavailable() },
				})

				h := conformance.DriverHarness{
					Driver:  test.driver(w),
					Network: windowsControls{w},
					Signer:  sim.NewSigner(1, nil),
					Absent: []string{
						"chain.RequestURIBuilder",
						"chain.HeadNotifier",
						"chain.TipReader",
						"chain.Mempool",
						"chain.TokenAccounter",
						"chain.Recoverer",
						"chain.StrayLister",
						"control.CoinLister",
						"chain.Bumper",
						"chain.FeeChecker",
						"chain.InputPricer",
						"chain.GasReader",
						"chain.FitChecker",
						"control.CheapPayer",
						"chain.Nonces",
						"chain.Batcher",
						"replacement of transactions",
						"control.VariablePayer",
						"control.NodeFaker",
						"control.HeaderUpgrader",
						"DriverHarness.Misconfigured", // driver and node are one
						test.absent,
					},
					Unreachable: test.driver(unreachable),
				}
				simAddresses(&h, w.NewAddress())

				if test.config.NonceAccounts == 0 {
					h.Absent = append(h.Absent, "control.NonceOpener")
				} else {
					h.Network = noncedControls{windowsControls{w}, map[chain.Address]int{}}
				}

				if broken := nonceMutants[os.Getenv(mutantVariable)]; broken.change != nil {
					h.Driver = broken.change(h.Driver.(noncedDriver), w)
					h.Patience = 200 * time.Millisecond
				}

				return h
			})
		})
	}
}

func byBlock(w *sim.Windows) chain.Driver { return w }
