package conformance_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/conformance/internal/drivertest"
)

// TestCapabilityNames checks that package and suite name each capability alike.
func TestCapabilityNames(t *testing.T) {
	for capability, want := range map[conformance.Capability]drivertest.Capability{
		conformance.BlockScanner:      drivertest.BlockScanner,
		conformance.AddressScanner:    drivertest.AddressScanner,
		conformance.Mempool:           drivertest.Mempool,
		conformance.Finder:            drivertest.Finder,
		conformance.Balancer:          drivertest.Balancer,
		conformance.Deriver:           drivertest.Deriver,
		conformance.TokenAccounter:    drivertest.TokenAccounter,
		conformance.URIBuilder:        drivertest.URIBuilder,
		conformance.RequestURIBuilder: drivertest.RequestURIBuilder,
		conformance.FeeEstimator:      drivertest.FeeEstimator,
		conformance.FeeChecker:        drivertest.FeeChecker,
		conformance.InputPricer:       drivertest.InputPricer,
		conformance.Nonces:            drivertest.Nonces,
		conformance.Sender:            drivertest.Sender,
		conformance.Batcher:           drivertest.Batcher,
		conformance.Sweeper:           drivertest.Sweeper,
		conformance.Recoverer:         drivertest.Recoverer,
		conformance.Bumper:            drivertest.Bumper,
		conformance.Checker:           drivertest.Checker,
		conformance.HeadNotifier:      drivertest.HeadNotifier,
		conformance.Tokens:            drivertest.Tokens,
		conformance.UnreachableNode:   drivertest.UnreachableNode,
		conformance.WrongNode:         drivertest.WrongNode,
		conformance.Forking:           drivertest.Forking,
		conformance.ZeroPayments:      drivertest.ZeroPayments,
		conformance.FailedPayments:    drivertest.FailedPayments,
		conformance.Freezing:          drivertest.Freezing,
		conformance.Pruning:           drivertest.Pruning,
		conformance.CoinSource:        drivertest.CoinSource,
		conformance.CheapPayments:     drivertest.CheapPayments,
		conformance.Replacement:       drivertest.Replacement,
		conformance.Expiry:            drivertest.Expiry,
	} {
		if string(capability) != want {
			t.Errorf("capability %q is %q in the suite", capability, want)
		}
	}
}
