package bitcoin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/address/v2/bech32"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/fault"
)

// The addresses are those of BIP-173, BIP-350 and BIP-13's and the wiki's examples.
func TestAddressesOfEveryKindAndNetwork(t *testing.T) {
	for _, c := range []struct {
		network chain.Network
		in      string
		want    chain.Address // "" when it is none
	}{
		{bitcoin.Mainnet, "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"},
		{bitcoin.Mainnet, "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"},
		{bitcoin.Mainnet, "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"},
		{
			bitcoin.Mainnet,
			"bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
			"bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
		},
		{
			bitcoin.Mainnet,
			"bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
			"bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
		},
		{bitcoin.Testnet4, "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"},
		{
			bitcoin.Signet,
			"tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c",
			"tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c",
		},
		{bitcoin.Regtest, "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc", "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc"},
		{bitcoin.Testnet4, "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn", "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn"},

		{bitcoin.Mainnet, "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", ""},
		{bitcoin.Mainnet, "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn", ""},
		{bitcoin.Mainnet, "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc", ""},
		{bitcoin.Testnet4, "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", ""},
		{bitcoin.Testnet4, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080", ""},
		// v1, 40 bytes
		{bitcoin.Mainnet, "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y", ""},
		// v16, 2 bytes
		{bitcoin.Mainnet, "BC1SW50QGDZ25J", ""},
		// v2
		{bitcoin.Mainnet, "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs", ""},
		// pay-to-anchor
		{bitcoin.Mainnet, "bc1pfeessrawgf", ""},
		// a key that is no point of the curve: nobody can spend its outputs
		{bitcoin.Mainnet, "bc1pqvpsxqcrqvpsxqcrqvpsxqcrqvpsxqcrqvpsxqcrqvpsxqcrqvpsvk87xn", ""},
		// v1 with the checksum of v0
		{bitcoin.Mainnet, "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd", ""},
		// v0 with the checksum of v1
		{bitcoin.Mainnet, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh", ""},
		{bitcoin.Mainnet, "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3", ""},
		{bitcoin.Mainnet, "bitcoin:1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", ""},
	} {
		got, err := offline(t, c.network).ParseAddress(c.in)
		if got != c.want || (c.want == "") != errors.Is(err, fault.Invalid) {
			t.Errorf("%s: ParseAddress(%q) = %q, %v, want %q", c.network.Slug, c.in, got, err, c.want)
		}
	}
}

func TestPaymentURIIsThatOfBIP21(t *testing.T) {
	d := offline(t, bitcoin.Mainnet)
	for amount, want := range map[uint64]string{
		5_000_000_000: "bitcoin:bc1qx?amount=50",
		2_030_000_000: "bitcoin:bc1qx?amount=20.3",
		1:             "bitcoin:bc1qx?amount=0.00000001",
	} {
		if got := d.PaymentURI("bc1qx", d.Network().Assets[0], chain.Units(amount)); got != want {
			t.Errorf("PaymentURI of %d is %s, want %s", amount, got, want)
		}
	}
}

// TestNetworksAreNamedByTheirGenesis. The names are those of CAIP-4's registry and the networks'
// first blocks.
func TestNetworksAreNamedByTheirGenesis(t *testing.T) {
	for _, c := range []struct {
		network chain.Network
		caip2   string
		live    bool
	}{
		{bitcoin.Mainnet, "bip122:000000000019d6689c085ae165831e93", true},
		{bitcoin.Testnet4, "bip122:00000000da84f2bafbbc53dee25a72ae", false},
		{bitcoin.Signet, "bip122:00000008819873e925422c1ff0f99f7c", false},
		{bitcoin.Regtest, "bip122:0f9188f13cb7b2c71f2a335e3a4fc328", false},
	} {
		if c.network.CAIP2 != c.caip2 || c.network.Livemode != c.live {
			t.Errorf("%s is %s, live %t", c.network.Slug, c.network.CAIP2, c.network.Livemode)
		}

		if _, err := chain.NewRegistry(offline(t, c.network)); err != nil {
			t.Error(err)
		}
	}
}

func TestConfigurationThatCannotWork(t *testing.T) {
	for name, change := range map[string]func(*bitcoin.Config){
		"no node":          func(c *bitcoin.Config) { c.RPC = "" },
		"not http":         func(c *bitcoin.Config) { c.RPC = "tcp://127.0.0.1:8332" },
		"another family":   func(c *bitcoin.Config) { c.Network.Family = chain.EVM },
		"unknown genesis":  func(c *bitcoin.Config) { c.Network.CAIP2 = "bip122:00" },
		"another rule":     func(c *bitcoin.Config) { c.Network.Rule = chain.RuleFinalized },
		"no confirmations": func(c *bitcoin.Config) { c.Network.Confirmations = 0 },
		"no coin":          func(c *bitcoin.Config) { c.Network.Assets = nil },
		"rates crossed":    func(c *bitcoin.Config) { c.MinFeeRate, c.MaxFeeRate = 2, 1 },
		"rate too high":    func(c *bitcoin.Config) { c.MaxFeeRate = 1 << 62 },
		"target too far":   func(c *bitcoin.Config) { c.FeeTarget = 1009 },
	} {
		c := bitcoin.Config{Network: bitcoin.Regtest, RPC: "http://user:hidden-password@127.0.0.1:1"}
		change(&c)

		_, err := bitcoin.NewDriver(c)
		if !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range append(
		badAddresses, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
		"2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc",
	) {
		f.Add(s)
	}

	d, err := bitcoin.NewDriver(bitcoin.Config{Network: bitcoin.Regtest, RPC: "http://127.0.0.1:1"})
	if err != nil {
		f.Fatal(err)
	}

	f.Fuzz(func(t *testing.T, s string) {
		a, err := d.ParseAddress(s)
		if err != nil {
			if a != "" || !errors.Is(err, fault.Invalid) {
				t.Fatalf("%q: %q, %v", s, a, err)
			}

			return
		}

		reread, err := d.ParseAddress(string(a))
		if err != nil || reread != a || !strings.EqualFold(string(a), s) {
			t.Fatalf("%q is %q, which is %q, %v", s, a, reread, err)
		}
	})
}

// badAddresses are no addresses of regtest.
var badAddresses = []string{
	"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt081",                       // checksum
	"bcrt1Qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",                       // two cases
	"bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",                         // mainnet
	"tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",                         // testnets and signet
	"1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",                                 // mainnet, base58
	"3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",                                 // mainnet, base58 script
	"0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798", // a public key
	" bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
}

// TestProgramOfALaterVersionIsNoP2WPKH: 20 bytes under witness version 1 are valid bech32m, and
// money that nobody can spend.
func TestProgramOfALaterVersionIsNoP2WPKH(t *testing.T) {
	program, err := bech32.ConvertBits(payeeScript()[2:], 8, 5, true)
	if err != nil {
		t.Fatal(err)
	}

	s, err := bech32.EncodeM("bcrt", append([]byte{1}, program...))
	if err != nil {
		t.Fatal(err)
	}

	if a, err := offline(t, bitcoin.Regtest).ParseAddress(s); !errors.Is(err, fault.Invalid) {
		t.Errorf("%s is taken for %q, %v", s, a, err)
	}
}
