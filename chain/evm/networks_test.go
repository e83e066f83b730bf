package evm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
)

var catalogue = []chain.Network{
	evm.Ethereum, evm.Sepolia, evm.Base, evm.BaseSepolia, evm.Optimism, evm.OPSepolia,
	evm.Arbitrum, evm.ArbitrumSepolia, evm.Polygon, evm.PolygonAmoy, evm.BNB, evm.BNBTestnet,
}

func TestCatalogueIsComplete(t *testing.T) {
	var drivers []chain.Driver

	for _, n := range append(catalogue, evm.Local(31337)) {
		driver, err := evm.NewDriver(evm.Config{Network: n, RPC: "http://node.invalid"})
		if err != nil {
			t.Fatalf("%s: %v", n.Slug, err)
		}

		drivers = append(drivers, driver)

		if n.CAIP2 != fmt.Sprintf("eip155:%d", n.ChainID) || n.Family != chain.EVM || n.BlockTime <= 0 ||
			n.DisplayName == "" {
			t.Errorf(
				"%s: CAIP-2 %q, chain id %d, family %q, block time %v, name %q",
				n.Slug, n.CAIP2, n.ChainID, n.Family, n.BlockTime, n.DisplayName,
			)
		}

		native, ok := n.Native()
		if !ok || native.Symbol != n.NativeAsset || native.Decimals != 18 {
			t.Errorf("%s: native asset %+v, want %s with 18 decimals", n.Slug, native, n.NativeAsset)
		}

		for _, asset := range n.Assets {
			if asset.MinAmount.IsZero() || asset.Name == "" {
				t.Errorf("%s: %s has no name or least amount", n.Slug, asset.Symbol)
			}

			if asset.Kind != chain.Token {
				continue
			}

			// Contracts are written with their checksum, so that a wrong digit is found.
			got, err := driver.ParseAddress(string(asset.Contract))
			if err != nil || got != asset.Contract || strings.ToLower(string(got)) == string(got) {
				t.Errorf("%s: contract %s of %s: %v", n.Slug, asset.Contract, asset.Symbol, err)
			}
		}

		if n.Slug == "local" {
			continue
		}

		if !strings.Contains(n.ExplorerTxURL, "{txHash}") ||
			!strings.Contains(n.ExplorerAddressURL, "{address}") ||
			n.EstimatedConfirmation <= 0 {
			t.Errorf(
				"%s: explorer %q and %q, expected time %v",
				n.Slug, n.ExplorerTxURL, n.ExplorerAddressURL, n.EstimatedConfirmation,
			)
		}

		if (n.FaucetURL == "") != n.Livemode {
			t.Errorf("%s: faucet %q in live mode %t", n.Slug, n.FaucetURL, n.Livemode)
		}
	}

	if _, err := chain.NewRegistry(drivers...); err != nil {
		t.Error(err)
	}
}

// readSeries returns the cursor of a synthetic series of headers, a block in each pace, timed in whole seconds as
// headers are: several may share a time.
func readSeries(pace time.Duration, count uint64) scan.Cursor {
	var c scan.Cursor

	began := time.Unix(1_800_000_000, 0)

	for i := range count {
		at := began.Add(time.Duration(i) * pace).Truncate(time.Second)
		c = scanstate.Forward(c, []chain.Block{{Ref: chain.Ref{Height: 1_000_000 + i, Hash: "h", Time: at}}})
	}

	return c
}

// Nothing that code depends on is in the catalogue as a number of blocks alone. Where finality cannot be read, nothing
// confirms sooner than a network's estimate and its fall-back say, however fast its blocks come. The series are
// synthetic: of the paces that networks had in November 2026, of Base five blocks to a timestamp.
func TestCatalogueConfirmsNoSoonerWhereBlocksComeFaster(t *testing.T) {
	paces := map[string]time.Duration{
		"ethereum": 12 * time.Second, "sepolia": 12 * time.Second,
		"base": 200 * time.Millisecond, "base-sepolia": 200 * time.Millisecond,
		"optimism": 2 * time.Second, "op-sepolia": 2 * time.Second,
		"arbitrum": 250 * time.Millisecond, "arbitrum-sepolia": 250 * time.Millisecond,
		"polygon": 2 * time.Second, "polygon-amoy": 2 * time.Second,
		"bnb": 450 * time.Millisecond, "bnb-testnet": 450 * time.Millisecond,
	}

	for _, pace := range []time.Duration{
		12 * time.Second, 2 * time.Second, 450 * time.Millisecond, 250 * time.Millisecond, 200 * time.Millisecond,
	} {
		c := readSeries(pace, 8_000)

		measured, ok := scanstate.Pace(c)
		if !ok || (measured-pace).Abs() > pace/20 {
			t.Fatalf("of a block in %s, %s is measured", pace, measured)
		}

		for _, n := range catalogue {
			least := max(n.EstimatedConfirmation, n.Fallback) - 2*time.Second // times are in whole seconds

			height, ok := scanstate.FinalHeight(c, n, n.Confirmations)
			age := time.Duration(c.At.Height-height) * pace
			wait := scanstate.UntilFinal(c, n, n.Confirmations, c.At)

			if pace == paces[n.Slug] {
				t.Logf(
					"%-16s a block in %-5s %4d blocks, %-5s are %-8s estimated %s", n.Slug, pace,
					n.Confirmations, n.Fallback, wait.Round(time.Second), n.EstimatedConfirmation,
				)

				if n.BlockTime != pace {
					t.Errorf("%s names a block in %s, it has one in %s", n.Slug, n.BlockTime, pace)
				}
			}

			if n.Fallback == 0 || !ok || age < least || wait < least {
				t.Errorf(
					"%s at a block in %s: final after %s, %s to wait, want at least %s",
					n.Slug, pace, age, wait, least,
				)
			}
		}
	}
}

func TestConfigThatCannotWorkIsRefused(t *testing.T) {
	token := func(change func(a *chain.Asset)) func(c *evm.Config) {
		return func(c *evm.Config) {
			a := fakeToken
			change(&a)
			c.Tokens = append(c.Tokens, a)
		}
	}
	for name, change := range map[string]func(c *evm.Config){
		"no node":          func(c *evm.Config) { c.RPC = "" },
		"another family":   func(c *evm.Config) { c.Network.Family = chain.Tron },
		"no chain id":      func(c *evm.Config) { c.Network.ChainID = 0 },
		"no confirmations": func(c *evm.Config) { c.Network.Confirmations = 0 },
		"no rule":          func(c *evm.Config) { c.Network.Rule = "" },
		"no coin":          func(c *evm.Config) { c.Network.Assets = nil },
		"an unknown pool":  func(c *evm.Config) { c.Pool = "mempool" },
		"a bad oracle":     func(c *evm.Config) { c.L1GasPriceOracle = "0x1" },
		"a bad contract":   token(func(a *chain.Asset) { a.Contract = "0x1" }),
		"no contract":      token(func(a *chain.Asset) { a.Contract = "" }),
		"no symbol":        token(func(a *chain.Asset) { a.Symbol = "" }),
		"a contract twice": func(c *evm.Config) { c.Tokens = []chain.Asset{fakeToken, fakeToken} },
		"a contract's checksum": token(
			func(a *chain.Asset) { a.Contract = "0xa0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48" },
		),
	} {
		t.Run(name, func(t *testing.T) {
			c := evm.Config{Network: evm.Local(1337), RPC: "http://node.invalid"}
			change(&c)

			if _, err := evm.NewDriver(c); err == nil || fault.Code(err) == "" {
				t.Errorf("New: %v", err)
			}
		})
	}

	a := fakeToken
	a.Contract = chain.Address(strings.ToLower(string(a.Contract)))

	driver, err := evm.NewDriver(evm.Config{
		Network: evm.Local(1337),
		RPC:     "http://node.invalid",
		Tokens:  []chain.Asset{a},
	})
	if err != nil {
		t.Fatal(err)
	}

	if got, _ := driver.Network().
		Asset("USDX"); got.Contract != fakeToken.Contract ||
		got.ID != chain.AssetID("eip155:1337", fakeToken.Contract) {
		t.Errorf("the token became %+v", got)
	}
}

// Source: the examples of EIP-55.
func TestAddressChecksums(t *testing.T) {
	driver := driverOf(t, newFakeNode(0))
	for _, good := range []string{
		"0x52908400098527886E0F7030069857D2E4169EE7", "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
		"0xde709f2102306220921060314715629080e2fb77", "0x27b1fdb04752bbc536007a920d24acb045561c26",
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
	} {
		if got, err := driver.ParseAddress(good); err != nil || string(got) != good {
			t.Errorf("ParseAddress(%s) = %s, %v", good, got, err)
		}

		if wrong := flipCase(good); wrong != good {
			_, err := driver.ParseAddress(wrong)
			if mixed := strings.ToLower(wrong) != wrong && strings.ToUpper(wrong[2:]) != wrong[2:]; mixed {
				wantFault(t, err, fault.Invalid, "address_invalid")
			}
		}
	}
}

// flipCase returns s with the case of its last hex letter changed.
func flipCase(s string) string {
	for i := len(s) - 1; i > 2; i-- {
		switch c := s[i]; {
		case c >= 'a' && c <= 'f':
			return s[:i] + strings.ToUpper(s[i:i+1]) + s[i+1:]
		case c >= 'A' && c <= 'F':
			return s[:i] + strings.ToLower(s[i:i+1]) + s[i+1:]
		}
	}

	return s
}

// Source: the forms of EIP-681.
func TestPaymentURI(t *testing.T) {
	driver := driverOf(t, newFakeNode(0))
	native, _ := driver.Network().Native()
	token, _ := driver.Network().Asset("USDX")

	to := chain.Address("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")

	want := "ethereum:0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed@4242?value=10000000000000000"
	if got := driver.PaymentURI(to, native, chain.Pow10(16)); got != want {
		t.Errorf("%s, want %s", got, want)
	}

	want = "ethereum:" + string(token.Contract) +
		"@4242/transfer?address=0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed&uint256=1500000"
	if got := driver.PaymentURI(to, token, chain.Units(1_500_000)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
