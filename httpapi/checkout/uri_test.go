package checkout_test

// What the QR code and "Open in wallet" hold, against the examples that the standards themselves give.

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/solana"
)

// The documents that the examples are from.
const (
	bip21     = "BIP-21, section Examples"
	eip681    = "EIP-681, section Semantics"
	solanaPay = "Solana Pay Specification, section Specification: Transfer Request, Examples"
)

// uriExample is one request for money, as a standard writes it and as a driver does.
type uriExample struct {
	source string
	// example is the standard's own, to the letter; empty where it shows a form by its grammar only.
	example string
	network chain.Network
	asset   chain.Asset
	to      chain.Address // as the driver writes it; that of BIP-21 belongs to nobody, its checksum is wrong
	amount  string        // in base units
	uri     string
}

func uriExamples() []uriExample {
	btc, eth := chain.Asset{
		Symbol:   "BTC",
		Kind:     chain.Native,
		Decimals: 8,
	}, chain.Asset{
		Symbol:   "ETH",
		Kind:     chain.Native,
		Decimals: 18,
	}
	sol := chain.Asset{Symbol: "SOL", Kind: chain.Native, Decimals: 9}
	usdc := chain.Asset{
		Symbol:   "USDC",
		Kind:     chain.Token,
		Decimals: 6,
		Contract: "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
	}
	unicorn := chain.Asset{
		Symbol:   "UNICORN",
		Kind:     chain.Token,
		Contract: "0x89205A3A3b2A69De6Dbf7f01ED13B2108B2c43e7",
	}

	return []uriExample{
		{
			bip21,
			"bitcoin:175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W?amount=20.3&label=Luke-Jr",
			bitcoin.Mainnet,
			btc,
			"175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W",
			"2030000000",
			"bitcoin:175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W?amount=20.3",
		},
		{
			bip21,
			"bitcoin:175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W?amount=50&label=Luke-Jr&message=Donation%20for%20project%20xyz",
			bitcoin.Mainnet,
			btc,
			"175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W",
			"5000000000",
			"bitcoin:175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W?amount=50",
		},
		{
			eip681,
			"ethereum:0xfb6916095ca1df60bb79Ce92ce3ea74c37c5d359?value=2.014e18",
			evm.Ethereum,
			eth,
			"0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
			"2014000000000000000",
			"ethereum:0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359@1?value=2014000000000000000",
		},
		{
			eip681,
			"ethereum:0x89205a3a3b2a69de6dbf7f01ed13b2108b2c43e7/transfer" +
				"?address=0x8e23ee67d1332ad560396262c48ffbb01f93d052&uint256=1",
			evm.Ethereum,
			unicorn,
			"0x8e23Ee67d1332aD560396262C48ffbB01F93D052",
			"1",
			"ethereum:0x89205A3A3b2A69De6Dbf7f01ED13B2108B2c43e7@1/transfer" +
				"?address=0x8e23Ee67d1332aD560396262C48ffbB01F93D052&uint256=1",
		},
		{
			`EIP-681, section Syntax: target_address [ "@" chain_id ]`,
			"",
			evm.Base,
			eth,
			"0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
			"1",
			"ethereum:0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359@8453?value=1",
		},
		{
			solanaPay,
			"solana:mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN?amount=1&label=Michael" +
				"&message=Thanks%20for%20all%20the%20fish&memo=OrderId12345",
			solana.Mainnet,
			sol,
			"mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN",
			"1000000000",
			"solana:mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN?amount=1",
		},
		{
			solanaPay,
			"solana:mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN?amount=0.01" +
				"&spl-token=EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
			solana.Mainnet,
			usdc,
			"mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN",
			"10000",
			"solana:mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN?amount=0.01" +
				"&spl-token=EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
		},
	}
}

// uriDrivers make the drivers that write URIs, by the family of a network.
var uriDrivers = map[chain.Family]func(chain.Network) (payments.ChainDriver, error){
	chain.Bitcoin: func(n chain.Network) (payments.ChainDriver, error) {
		return bitcoin.New(bitcoin.Config{Network: n, RPC: "http://127.0.0.1:1"})
	},
	chain.Solana: func(n chain.Network) (payments.ChainDriver, error) {
		return solana.New(solana.Config{Network: n, RPC: "http://127.0.0.1:1"})
	},
	chain.EVM: func(n chain.Network) (payments.ChainDriver, error) {
		return evm.New(evm.Config{Network: n, RPC: "http://127.0.0.1:1"})
	},
}

// Every URI asks for what the standard's own example asks for, and for nothing else.
func TestPaymentURIsAreThoseOfTheStandards(t *testing.T) {
	for _, e := range uriExamples() {
		driver, err := uriDrivers[e.network.Family](e.network)
		if err != nil {
			t.Fatal(err)
		}

		got := driver.(chain.URIBuilder).PaymentURI(e.to, e.asset, chain.MustAmount(e.amount))
		if got != e.uri {
			t.Errorf("%s: %s, want %s", e.source, got, e.uri)
		}

		if e.example != "" && readURI(t, got) != readURI(t, e.example) {
			t.Errorf(
				"%s: %s asks for %q, the standard's %s for %q",
				e.source, got, readURI(t, got), e.example, readURI(t, e.example),
			)
		}
	}
}

// wordsToPeople are the parameters that only say something to the payer, and a reference for the
// payee. They are optional in every standard.
var wordsToPeople = []string{"label", "message", "memo", "reference"}

var number = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?([eE][0-9]+)?$`)

// readURI writes what a payment URI asks for in one way: hexadecimal digits in lower case, numbers
// without exponent, the chain that is meant where none is named, parameters in order and without
// words to people.
func readURI(t *testing.T, uri string) string {
	t.Helper()

	scheme, rest, ok := strings.Cut(uri, ":")
	target, query, _ := strings.Cut(rest, "?")

	params, err := url.ParseQuery(query)
	if !ok || err != nil {
		t.Fatalf("%q is no payment URI: %v", uri, err)
	}

	hexadecimal := func(s string) string {
		if strings.HasPrefix(s, "0x") {
			return strings.ToLower(s)
		}

		return s
	}

	if scheme == "ethereum" {
		target, function, _ := strings.Cut(target, "/")

		address, id, named := strings.Cut(target, "@")
		if !named {
			id = "1" // "the client's current network", which for the examples is Ethereum
		}

		rest = hexadecimal(address) + "@" + id + "/" + function
	} else {
		rest = target
	}

	var names []string

	for name := range params {
		if !slices.Contains(wordsToPeople, name) {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	out := scheme + ":" + rest

	for _, name := range names {
		value := hexadecimal(params.Get(name))
		if number.MatchString(value) {
			value = decimal.RequireFromString(value).String()
		}

		out += " " + name + "=" + value
	}

	return out
}
