// Package drivertest is the suite behind conformance.TestDriver: one test case per obligation of
// the interfaces in package chain.
//
// Run is the entry point. Each file holds the cases of one interface; env.go has what they share.
// The package declares the controls that it consumes; package conformance documents them for
// authors.
//
// It is one package because every interface of a driver is tested with the same environment, a file for each.
package drivertest

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
)

// Harness is conformance.DriverHarness: a driver with the network that it reads.
type Harness struct {
	Driver        chain.Driver
	Network       control.Base
	Signer        chain.Signer
	Absent        []Capability
	Unreachable   chain.Driver
	Misconfigured chain.Driver
	BadAddresses  []string
	Spellings     map[string]chain.Address
	Patience      time.Duration // 0 means defaultPatience
}

// Run runs every case against a harness of its own. A case whose capabilities are declared absent is
// skipped.
func Run(t *testing.T, factory func(t *testing.T) Harness) {
	t.Run("Capabilities", func(t *testing.T) { testCapabilities(t, factory(t)) })

	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			probe := newEnv(t, factory(t))
			for _, c := range part.needs {
				if !probe.has(c) {
					t.Skipf("declared absent: %s", c)
				}
			}

			for _, test := range part.tests {
				t.Run(test.name, func(t *testing.T) {
					e := newEnv(t, factory(t))
					for _, c := range test.needs {
						if !e.has(c) {
							t.Skipf("declared absent: %s", c)
						}
					}

					test.run(e)
				})
			}
		})
	}
}

type part struct {
	name  string
	needs []Capability
	tests []testCase
}

type testCase struct {
	name  string
	needs []Capability
	run   func(e *env)
}

var parts = []part{
	{"Driver", nil, headTests},
	{"TipReader", []Capability{TipReader}, tipTests},
	{"BlockScanner", []Capability{BlockScanner}, blockTests},
	{"AddressScanner", []Capability{AddressScanner}, addressScanTests},
	{"HeadNotifier", []Capability{HeadNotifier}, notifyTests},
	{"Mempool", []Capability{Mempool}, poolTests},
	{"Finder", []Capability{Finder}, finderTests},
	{"Agreed", []Capability{Agreed}, agreedTests},
	{"AgreedNonce", []Capability{Nonces, Agreed, BlockScanner}, countTests},
	{"Balancer", []Capability{Balancer}, balanceTests},
	{"Keys", nil, keyTests},
	{"Sender", []Capability{Sender}, senderTests},
	{"Orders", []Capability{Sender}, orderTests},
	{"NamedCoins", []Capability{Sender, CoinSource}, namedCoinTests},
	{"FeeChecker", []Capability{Sender, FeeChecker}, feeCheckTests},
	{"InputPricer", []Capability{InputPricer, CoinSource}, pricerTests},
	{"GasReader", []Capability{Sender, GasReader}, gasTests},
	{"FitChecker", []Capability{Sender, FitChecker}, fitTests},
	{"Decoder", []Capability{Sender, Decoder}, decodeTests},
	{"Replacement", []Capability{Sender, Replacement}, replacementTests},
	{"DurableNonces", []Capability{Sender, DurableNonces}, nonceTests},
	{"Batcher", []Capability{Sender, Batcher}, batchTests},
	{"Sweeper", []Capability{Sweeper}, releaseTests},
	{"StrayLister", []Capability{StrayLister}, strayTests},
	{"Recoverer", []Capability{Recoverer, Sender, Balancer}, recoveryTests},
	{"Bumper", []Capability{Bumper, Mempool, CoinSource}, bumpTests},
	{"Calls", nil, callTests},
}
