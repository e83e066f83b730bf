package conformance_test

import (
	"reflect"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/conformance/internal/drivertest"
)

// TestCapabilityNames checks that the suite names each capability as the interface that a driver or its
// controls implement.
func TestCapabilityNames(t *testing.T) {
	for capability, want := range map[drivertest.Capability]reflect.Type{
		drivertest.TipReader:         reflect.TypeFor[chain.TipReader](),
		drivertest.BlockScanner:      reflect.TypeFor[chain.BlockScanner](),
		drivertest.ParentReader:      reflect.TypeFor[chain.ParentReader](),
		drivertest.AddressScanner:    reflect.TypeFor[chain.AddressScanner](),
		drivertest.Mempool:           reflect.TypeFor[chain.Mempool](),
		drivertest.Finder:            reflect.TypeFor[chain.Finder](),
		drivertest.Balancer:          reflect.TypeFor[chain.Balancer](),
		drivertest.Deriver:           reflect.TypeFor[chain.Deriver](),
		drivertest.TokenAccounter:    reflect.TypeFor[chain.TokenAccounter](),
		drivertest.URIBuilder:        reflect.TypeFor[chain.URIBuilder](),
		drivertest.RequestURIBuilder: reflect.TypeFor[chain.RequestURIBuilder](),
		drivertest.FeeEstimator:      reflect.TypeFor[chain.FeeEstimator](),
		drivertest.FeeChecker:        reflect.TypeFor[chain.FeeChecker](),
		drivertest.GasReader:         reflect.TypeFor[chain.GasReader](),
		drivertest.FitChecker:        reflect.TypeFor[chain.FitChecker](),
		drivertest.InputPricer:       reflect.TypeFor[chain.InputPricer](),
		drivertest.Nonces:            reflect.TypeFor[chain.Nonces](),
		drivertest.Sender:            reflect.TypeFor[chain.Sender](),
		drivertest.Batcher:           reflect.TypeFor[chain.Batcher](),
		drivertest.Sweeper:           reflect.TypeFor[chain.Sweeper](),
		drivertest.Recoverer:         reflect.TypeFor[chain.Recoverer](),
		drivertest.Bumper:            reflect.TypeFor[chain.Bumper](),
		drivertest.Checker:           reflect.TypeFor[chain.Checker](),
		drivertest.Agreed:            reflect.TypeFor[chain.Agreed](),
		drivertest.Decoder:           reflect.TypeFor[chain.Decoder](),
		drivertest.HeadNotifier:      reflect.TypeFor[chain.HeadNotifier](),
		drivertest.Forking:           reflect.TypeFor[control.Forker](),
		drivertest.ZeroPayments:      reflect.TypeFor[control.ZeroPayer](),
		drivertest.FailedPayments:    reflect.TypeFor[control.FailingPayer](),
		drivertest.Freezing:          reflect.TypeFor[control.Freezer](),
		drivertest.Pruning:           reflect.TypeFor[control.Pruner](),
		drivertest.CoinSource:        reflect.TypeFor[control.CoinLister](),
		drivertest.CheapPayments:     reflect.TypeFor[control.CheapPayer](),
		drivertest.VariablePayment:   reflect.TypeFor[control.VariablePayer](),
		drivertest.LyingNodes:        reflect.TypeFor[control.NodeFaker](),
		drivertest.HeaderUpgrade:     reflect.TypeFor[control.HeaderUpgrader](),
		drivertest.Expiry:            reflect.TypeFor[control.Expirer](),
	} {
		if capability != want.String() {
			t.Errorf("%s is %q in the suite", want, capability)
		}
	}
}
