package conformance_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// utxoControls are the controls of sim.UTXO as the suite wants them.
type utxoControls struct{ u *sim.UTXO }

func (c utxoControls) NewAddress(context.Context) (chain.Address, error) {
	return c.u.NewAddress(), nil
}

func (c utxoControls) Fund(_ context.Context, to chain.Address, _ chain.Asset, amount chain.Amount) error {
	c.u.Fund(to, amount)
	return nil
}

func (c utxoControls) Pay(
	_ context.Context,
	to chain.Address,
	_ chain.Asset,
	amount chain.Amount,
) (string, error) {
	return c.u.Pay(to, amount), nil
}

func (c utxoControls) PayZero(_ context.Context, to chain.Address, _ chain.Asset) (string, error) {
	return c.u.Pay(to, chain.Amount{}), nil
}

func (c utxoControls) PayCheap(
	_ context.Context,
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
) (string, error) {
	return c.u.Send(sim.UTXOPayment{
		Outputs: []chain.Output{{To: to, AssetID: asset.ID, Amount: amount}},
		FeeRate: sim.DefaultRelayRate,
	})
}

func (c utxoControls) Mine(_ context.Context, n int) error {
	c.u.Mine(n)
	return nil
}

func (c utxoControls) Settle(context.Context) error { return nil }

func (c utxoControls) Fork(_ context.Context, depth int, keep ...string) error {
	c.u.Fork(keepingFork(depth, keep))
	return nil
}

func (c utxoControls) Prune(_ context.Context, below uint64) error {
	c.u.Prune(below)
	return nil
}

func (c utxoControls) Coins(_ context.Context, owner chain.Party) ([]chain.Coin, error) {
	return c.u.Coins(owner), nil
}

// keepingFork is a fork that includes some transactions again and drops the others.
func keepingFork(depth int, keep []string) sim.Fork {
	f := sim.Fork{Depth: uint64(depth), Fate: sim.DropOrphan, Each: map[string]sim.OrphanFate{}}
	for _, hash := range keep {
		f.Each[hash] = sim.Reinclude
	}

	return f
}

// simAddresses sets the addresses that every simulated network refuses and spells alike.
func simAddresses(h *conformance.DriverHarness, address chain.Address) {
	typo := []byte(address)
	typo[10] ^= 1 // another hex digit

	h.BadAddresses = []string{
		string(typo), strings.ToUpper(string(address[:8])) + string(address[8:]), string(address) + " ",
	}
	h.Spellings = map[string]chain.Address{strings.ToUpper(string(address)): address}
}

func TestDriverOfUTXO(t *testing.T) {
	conformance.TestDriver(t, func(*testing.T) conformance.DriverHarness {
		u := sim.NewUTXO(sim.UTXOConfig{CPFPMaxFee: 100_000})
		h := conformance.DriverHarness{
			Driver:  u,
			Network: utxoControls{u},
			Signer:  sim.NewSigner(1, nil),
			Absent: []string{
				"chain.Decoder",
				"chain.GasReader",
				"chain.FitChecker",
				"chain.RequestURIBuilder",
				"chain.HeadNotifier",
				"chain.TipReader",
				"chain.AddressScanner",
				"chain.TokenAccounter",
				"chain.Recoverer",
				"chain.StrayLister",
				"chain.Nonces",
				"chain.DurableNonces",
				"token assets",
				"chain.Balancer",       // its coins are read instead
				"control.FailingPayer", // no transaction fails in a block, no destination refuses
				"control.Freezer",
				"control.Expirer",
				"control.VariablePayer",
				"control.NodeFaker",
				"control.HeaderUpgrader",
				"DriverHarness.Misconfigured", // driver and node are one
			},
			Unreachable: sim.NewUTXO(sim.UTXOConfig{
				Intercept: func(context.Context, sim.Method) error { return sim.Unavailable() },
			}),
		}
		simAddresses(&h, u.NewAddress())

		if broken := utxoMutants[os.Getenv(mutantVariable)]; broken.change != nil {
			f := &faultyUTXO{UTXO: u, build: u.Build, paysEnough: u.PaysEnough, inputFees: u.InputFees}
			broken.change(f)

			h.Driver, h.Patience = f, 200*time.Millisecond
		}

		return h
	})
}
