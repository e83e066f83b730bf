package conformance_test

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/conformance"
)

// A driver's test hands the suite a driver, a network to read, and what to change the network with. What the driver
// or its network does not have is declared absent; the suite fails where that is not true.
func ExampleTestDriver() {
	_ = func(t *testing.T) { // func TestDriver(t *testing.T)
		conformance.TestDriver(t, newDriverHarness)
	}
}

// newDriverHarness returns the driver of package sim with a new network. The suite calls it many times.
func newDriverHarness(t *testing.T) conformance.DriverHarness {
	t.Helper()

	network := sim.New(sim.Config{})

	return conformance.DriverHarness{
		Driver:  network.Driver(),
		Network: driverControls{network},
		Signer:  sim.NewSigner(1, nil),
		Absent: []string{
			// Of the driver.
			"chain.AddressScanner",
			"chain.RequestURIBuilder",
			"chain.HeadNotifier",
			"chain.TipReader",
			"chain.TokenAccounter",
			"chain.DurableNonces",
			"chain.Recoverer",
			"chain.StrayLister",
			"chain.FeeChecker",
			"chain.InputPricer",
			"chain.Batcher",
			"chain.Bumper",

			// Of the network and its controls.
			"DriverHarness.Unreachable",
			"DriverHarness.Misconfigured",
			"control.Forker",
			"control.ZeroPayer",
			"control.FailingPayer",
			"control.Freezer",
			"control.Pruner",
			"control.CoinLister",
			"control.CheapPayer",
			"control.VariablePayer",
			"control.NodeFaker",
			"control.HeaderUpgrader",
		},
		BadAddresses: []string{"sim1", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"},
	}
}

// driverControls act for other people on the network. A network with more abilities implements more of them, such as
// control.Forker.
type driverControls struct{ network *sim.Chain }

func (c driverControls) NewAddress(context.Context) (chain.Address, error) {
	return c.network.NewAddress(), nil
}

func (c driverControls) Fund(_ context.Context, to chain.Address, a chain.Asset, amount chain.Amount) error {
	c.network.Fund(to, a.Symbol, amount)
	return nil
}

func (c driverControls) Pay(
	_ context.Context,
	to chain.Address,
	a chain.Asset,
	amount chain.Amount,
) (txHash string, err error) {
	return c.network.Pay(to, a.Symbol, amount), nil
}

func (c driverControls) Mine(_ context.Context, blocks int) error {
	c.network.Mine(blocks)
	return nil
}

func (c driverControls) Settle(context.Context) error { return nil }
