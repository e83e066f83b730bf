package conformance_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// simControls are the controls of internal/testing/sim as the suite wants them.
type simControls struct{ c *sim.Chain }

func (s simControls) NewAddress(context.Context) (chain.Address, error) { return s.c.NewAddress(), nil }

func (s simControls) Fund(_ context.Context, to chain.Address, a chain.Asset, amount chain.Amount) error {
	s.c.Fund(to, a.Symbol, amount)
	return nil
}

func (s simControls) Pay(
	_ context.Context,
	to chain.Address,
	a chain.Asset,
	amount chain.Amount,
) (string, error) {
	return s.c.Pay(to, a.Symbol, amount), nil
}

func (s simControls) Mine(_ context.Context, n int) error {
	s.c.Mine(n)
	return nil
}

func (s simControls) Settle(context.Context) error { return nil }

func (s simControls) Fork(_ context.Context, depth int, keep ...string) error {
	f := sim.Fork{Depth: uint64(depth), Fate: sim.DropOrphan, Each: map[string]sim.OrphanFate{}}
	for _, hash := range keep {
		f.Each[hash] = sim.Reinclude
	}

	s.c.Fork(f)

	return nil
}

func (s simControls) PayZero(_ context.Context, to chain.Address, a chain.Asset) (string, error) {
	return s.c.Pay(to, a.Symbol, chain.Amount{}), nil
}

func (s simControls) PayFailing(
	_ context.Context,
	to chain.Address,
	a chain.Asset,
	amount chain.Amount,
) (string, error) {
	return s.c.PayFailing(to, a.Symbol, amount), nil
}

func (s simControls) Freeze(_ context.Context, address chain.Address, a chain.Asset) error {
	s.c.Freeze(address, a.Symbol, true)
	return nil
}

func (s simControls) PayVariable(
	_ context.Context,
	to chain.Address,
	a chain.Asset,
	claimed, moved chain.Amount,
) (string, error) {
	return s.c.PayVariable(
		chain.Output{To: to, AssetID: a.ID, Amount: claimed},
		func(uint64, uint64) sim.Result {
			return sim.Result{Outputs: []chain.Output{{To: to, AssetID: a.ID, Amount: moved}}}
		},
	), nil
}

func (s simControls) UpgradeHeaders(context.Context) error {
	s.c.SetNode(0, sim.NodeFaults{UnknownHeader: true})
	return nil
}

// oneNode are the controls of a network with one node, which can be pruned.
type oneNode struct{ simControls }

func (s oneNode) Prune(_ context.Context, below uint64) error {
	s.c.Prune(below)
	return nil
}

func (s simControls) Expire(_ context.Context, tx chain.Signed) error {
	for tip := s.c.Mine(1); tip.Height <= tx.ValidToHeight; tip = s.c.Mine(1) {
	}

	return nil
}

func simHarness(t *testing.T) conformance.DriverHarness {
	t.Helper()
	return harness(t, sim.New(sim.Config{MaxOutputs: 8}))
}

// expiringHarness is a network on which transactions run out.
func expiringHarness(t *testing.T) conformance.DriverHarness {
	t.Helper()
	return harness(t, sim.New(sim.Config{ValidBlocks: 30, MaxOutputs: 8}))
}

// harness is a network with one node, of which a mutant may break the driver.
func harness(t *testing.T, c *sim.Chain) conformance.DriverHarness {
	t.Helper()

	h := simulated(t, c)
	h.Network = oneNode{simControls{c}}
	h.Absent = append(h.Absent, "control.NodeFaker")

	if broken := driverMutants[os.Getenv(mutantVariable)]; broken.change != nil {
		broken.change(&h, c)
		h.Patience = 200 * time.Millisecond
	}

	return h
}

// simulated is what the harnesses of a simulated network have in common.
func simulated(t *testing.T, c *sim.Chain) conformance.DriverHarness {
	t.Helper()

	address := string(c.NewAddress())
	typo := []byte(address)
	typo[10] ^= 1 // another hex digit

	return conformance.DriverHarness{
		Driver: c,
		Signer: sim.NewSigner(1, nil),
		Absent: []string{
			"chain.AddressScanner",
			"chain.RequestURIBuilder",
			"chain.HeadNotifier",
			"chain.TipReader",
			"chain.TokenAccounter",
			"chain.DurableNonces",
			"chain.Recoverer",
			"chain.StrayLister",
			"control.CoinLister",
			"chain.Bumper",
			"chain.FeeChecker",
			"chain.InputPricer",
			"control.CheapPayer",
			"DriverHarness.Misconfigured", // driver and node are one
		},
		Unreachable: sim.New(sim.Config{
			Intercept: func(context.Context, sim.Method) error { return sim.Unavailable() },
		}),
		BadAddresses: []string{string(typo), strings.ToUpper(address[:8]) + address[8:], address + " "},
		Spellings:    map[string]chain.Address{strings.ToUpper(address): chain.Address(address)},
	}
}

func TestDriverOfSim(t *testing.T) { conformance.TestDriver(t, simHarness) }

// The harness that the documentation shows passes.
func TestDriverOfExample(t *testing.T) { conformance.TestDriver(t, newDriverHarness) }

func TestDriverOfExpiringSim(t *testing.T) { conformance.TestDriver(t, expiringHarness) }

// light is a driver of the kind that cannot read whole blocks, cannot send, and knows token accounts.
type light struct {
	chain.Driver
	chain.Finder
	chain.Balancer
	chain.Deriver
	scanner chain.BlockScanner
}

func (l light) TransfersTo(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	blocks, err := l.scanner.Blocks(ctx, from, to)
	if err != nil {
		return nil, err
	}

	var out []chain.Block

	for _, b := range blocks {
		b.Transfers = slices.DeleteFunc(
			b.Transfers, func(t chain.Transfer) bool { return !slices.Contains(addresses, t.To) },
		)
		if len(b.Transfers) > 0 {
			out = append(out, b)
		}
	}

	return out, nil
}

func (l light) TokenAccount(owner chain.Address, asset chain.Asset) (chain.Address, error) {
	if _, err := l.ParseAddress(string(owner)); err != nil {
		return "", err
	}

	return chain.Address("token-account-" + string(asset.Contract) + "-" + string(owner)), nil
}

func lightHarness(t *testing.T) conformance.DriverHarness {
	t.Helper()
	h := simHarness(t)
	lighten := func(d chain.Driver) light {
		c := d.(*sim.Chain)
		return light{c, c, c, c, c}
	}
	h.Driver, h.Unreachable = lighten(h.Driver), lighten(h.Unreachable)

	h.Absent = []string{
		"chain.Decoder",
		"chain.RequestURIBuilder",
		"chain.HeadNotifier",
		"chain.TipReader",
		"chain.Recoverer",
		"chain.StrayLister",
		"chain.BlockScanner",
		"chain.ParentReader",
		"chain.Mempool",
		"chain.URIBuilder",
		"chain.FeeEstimator",
		"chain.Nonces",
		"chain.DurableNonces",
		"chain.Sender",
		"chain.Batcher",
		"chain.Sweeper",
		"chain.Checker",
		"chain.Agreed",
		"control.CoinLister",
		"chain.Bumper",
		"chain.FeeChecker",
		"chain.InputPricer",
		"chain.GasReader",
		"chain.FitChecker",
		"control.CheapPayer",
		"control.NodeFaker",
		"DriverHarness.Misconfigured",
	}
	if broken := lightMutants[os.Getenv(mutantVariable)]; broken.change != nil {
		l := h.Driver.(light)
		h.Driver = broken.change(l)
		h.Patience = 200 * time.Millisecond
	}

	return h
}

func TestDriverOfLightSim(t *testing.T) { conformance.TestDriver(t, lightHarness) }

// TestSignerOfHDKey holds the signer that the library brings along to the suite, with every family.
func TestSignerOfHDKey(t *testing.T) {
	for _, purpose := range []struct {
		name    string
		taproot bool
	}{{"BIP84", false}, {"BIP86", true}} {
		t.Run(purpose.name, func(t *testing.T) {
			conformance.TestSigner(t, func(t *testing.T) conformance.SignerHarness {
				var options []hdkey.Option
				if purpose.taproot {
					options = append(options, hdkey.WithTaproot())
				}

				signer, err := hdkey.FromSeed(bytes.Repeat([]byte{7}, 32), options...)
				if err != nil {
					t.Fatal(err)
				}

				h := conformance.SignerHarness{
					Signer:  signer,
					Network: "ethereum",
					Unknown: []chain.KeyRef{
						{Family: "unheard-of", Role: chain.RoleMaster},
						{Family: chain.EVM, Role: "owner"},
						{Family: chain.EVM, Role: chain.RoleDeposit, Index: 1 << 31},
					},
				}
				for _, family := range []chain.Family{chain.EVM, chain.Bitcoin, chain.Solana, chain.Tron, chain.Sim} {
					for _, live := range []bool{false, true} {
						for _, role := range []chain.Role{chain.RoleDeposit, chain.RoleMaster} {
							for index := range uint32(2) {
								ref := chain.KeyRef{Family: family, Livemode: live, Role: role, Index: index}

								h.Keys = append(h.Keys, ref)
								if family == chain.Bitcoin {
									h.TaprootKeys = append(h.TaprootKeys, ref)
								}
							}
						}
					}
				}

				return h
			})
		})
	}
}

func TestSignerOfSim(t *testing.T) {
	conformance.TestSigner(t, func(*testing.T) conformance.SignerHarness {
		var signer chain.Signer = sim.NewSigner(7, func(r chain.SignRequest) error {
			if r.Intent.Kind == "sweep" {
				return chain.Refuse("no_sweeps")
			}

			return nil
		})
		if broken := signerMutants[os.Getenv(mutantVariable)]; broken.change != nil {
			signer = broken.change(signer)
		}

		return conformance.SignerHarness{
			Signer:  signer,
			Network: "simnet",
			Keys: []chain.KeyRef{
				{Family: chain.Sim, Role: chain.RoleDeposit},
				{Family: chain.Sim, Role: chain.RoleDeposit, Index: 1},
				{Family: chain.Sim, Role: chain.RoleMaster},
				{Family: chain.Sim, Livemode: true, Role: chain.RoleMaster},
			},
			Unknown: []chain.KeyRef{
				{Family: chain.EVM, Role: chain.RoleDeposit},
				{Family: chain.Sim, Role: "owner"},
			},
			Refused: &chain.SignRequest{
				Network:  "simnet",
				Unsigned: []byte("transaction"),
				Intent:   chain.Intent{Kind: "sweep"},
				Payloads: []chain.Payload{
					{
						Key:  chain.KeyRef{Family: chain.Sim, Role: chain.RoleMaster},
						Data: bytes.Repeat([]byte{1}, 32),
					},
				},
			},
		}
	})
}
