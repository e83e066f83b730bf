package drivertest

import (
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
)

// Capability is a name in conformance.DriverHarness.Absent.
type Capability = string

// The optional interfaces of package chain.
const (
	TipReader         = "chain.TipReader"
	BlockScanner      = "chain.BlockScanner"
	AddressScanner    = "chain.AddressScanner"
	ParentReader      = "chain.ParentReader"
	Mempool           = "chain.Mempool"
	Finder            = "chain.Finder"
	Balancer          = "chain.Balancer"
	Deriver           = "chain.Deriver"
	TokenAccounter    = "chain.TokenAccounter"
	URIBuilder        = "chain.URIBuilder"
	RequestURIBuilder = "chain.RequestURIBuilder"
	FeeEstimator      = "chain.FeeEstimator"
	FeeChecker        = "chain.FeeChecker"
	InputPricer       = "chain.InputPricer"
	GasReader         = "chain.GasReader"
	FitChecker        = "chain.FitChecker"
	Nonces            = "chain.Nonces"
	DurableNonces     = "chain.DurableNonces"
	Sender            = "chain.Sender"
	Batcher           = "chain.Batcher"
	Sweeper           = "chain.Sweeper"
	Recoverer         = "chain.Recoverer"
	StrayLister       = "chain.StrayLister"
	Bumper            = "chain.Bumper"
	Checker           = "chain.Checker"
	Agreed            = "chain.Agreed"
	Decoder           = "chain.Decoder"
	HeadNotifier      = "chain.HeadNotifier"
)

// What the network, its node and the controls may lack.
const (
	Tokens          = "token assets"
	UnreachableNode = "DriverHarness.Unreachable"
	WrongNode       = "DriverHarness.Misconfigured"
	Forking         = "control.Forker"
	ZeroPayments    = "control.ZeroPayer"
	FailedPayments  = "control.FailingPayer"
	Freezing        = "control.Freezer"
	Pruning         = "control.Pruner"
	CoinSource      = "control.CoinLister"
	CheapPayments   = "control.CheapPayer"
	VariablePayment = "control.VariablePayer"
	LyingNodes      = "control.NodeFaker"
	HeaderUpgrade   = "control.HeaderUpgrader"
	Replacement     = "replacement of transactions"
	Expiry          = "control.Expirer"
	NonceOpening    = "control.NonceOpener"
)

// capabilities has, for each capability, whether a harness has it.
var capabilities = []struct {
	name Capability
	has  func(harness Harness) bool
}{
	{TipReader, driverIs[chain.TipReader]},
	{BlockScanner, driverIs[chain.BlockScanner]},
	{AddressScanner, driverIs[chain.AddressScanner]},
	{
		ParentReader, // whole blocks name their parents
		func(harness Harness) bool {
			return driverIs[chain.BlockScanner](harness) || driverIs[chain.ParentReader](harness)
		},
	},
	{Mempool, driverIs[chain.Mempool]},
	{Finder, driverIs[chain.Finder]},
	{Balancer, driverIs[chain.Balancer]},
	{Deriver, driverIs[chain.Deriver]},
	{TokenAccounter, driverIs[chain.TokenAccounter]},
	{URIBuilder, driverIs[chain.URIBuilder]},
	{RequestURIBuilder, driverIs[chain.RequestURIBuilder]},
	{FeeEstimator, driverIs[chain.FeeEstimator]},
	{FeeChecker, driverIs[chain.FeeChecker]},
	{InputPricer, driverIs[chain.InputPricer]},
	{GasReader, driverIs[chain.GasReader]},
	{FitChecker, driverIs[chain.FitChecker]},
	{Nonces, driverIs[chain.Nonces]},
	{DurableNonces, driverIs[chain.DurableNonces]},
	{Sender, driverIs[chain.Sender]},
	{
		Batcher,
		func(harness Harness) bool { b, ok := harness.Driver.(chain.Batcher); return ok && b.MaxOutputs() > 1 },
	},
	{Sweeper, driverIs[chain.Sweeper]},
	{Recoverer, driverIs[chain.Recoverer]},
	{StrayLister, driverIs[chain.StrayLister]},
	{Bumper, driverIs[chain.Bumper]},
	{Checker, driverIs[chain.Checker]},
	{Agreed, driverIs[chain.Agreed]},
	{Decoder, driverIs[chain.Decoder]},
	{HeadNotifier, driverIs[chain.HeadNotifier]},
	{UnreachableNode, func(harness Harness) bool { return harness.Unreachable != nil }},
	{WrongNode, func(harness Harness) bool { return harness.Misconfigured != nil }},
	{Forking, controlsAre[control.Forker]},
	{ZeroPayments, controlsAre[control.ZeroPayer]},
	{FailedPayments, controlsAre[control.FailingPayer]},
	{Freezing, controlsAre[control.Freezer]},
	{Pruning, controlsAre[control.Pruner]},
	{CoinSource, controlsAre[control.CoinLister]},
	{CheapPayments, controlsAre[control.CheapPayer]},
	{VariablePayment, controlsAre[control.VariablePayer]},
	{LyingNodes, controlsAre[control.NodeFaker]},
	{HeaderUpgrade, controlsAre[control.HeaderUpgrader]},
	{
		NonceOpening, // where a driver has no durable nonces, nothing is missing
		func(harness Harness) bool {
			return !driverIs[chain.DurableNonces](harness) || controlsAre[control.NonceOpener](harness)
		},
	},
	{
		Tokens,
		func(harness Harness) bool {
			return slices.ContainsFunc(
				harness.Driver.Network().Assets,
				func(asset chain.Asset) bool { return asset.Kind == chain.Token },
			)
		},
	},
}

func driverIs[T any](harness Harness) bool {
	_, ok := harness.Driver.(T)
	return ok
}

func controlsAre[T any](harness Harness) bool {
	_, ok := harness.Network.(T)
	return ok
}

func testCapabilities(t *testing.T, harness Harness) {
	known := []Capability{Replacement, Expiry}
	for _, c := range capabilities {
		known = append(known, c.name)
		switch has, declared := c.has(harness), slices.Contains(harness.Absent, c.name); {
		case has && declared:
			t.Errorf(
				"%s is declared absent, but it is there: take it off DriverHarness.Absent so that it is tested",
				c.name,
			)
		case !has && !declared:
			t.Errorf("%s is missing: implement it, or declare it in DriverHarness.Absent", c.name)
		}
	}

	for _, c := range harness.Absent {
		if !slices.Contains(known, c) {
			t.Errorf("DriverHarness.Absent names %q, which is no capability", c)
		}
	}

	absent := func(c Capability) bool { return slices.Contains(harness.Absent, c) }
	if !absent(Sender) && absent(Deriver) {
		t.Errorf("a driver that sends has to derive the addresses it sends from: implement chain.Deriver")
	}

	if !absent(Sender) && absent(Balancer) && absent(CoinSource) {
		t.Errorf(
			"the amounts of sent transactions cannot be checked without chain.Balancer or control.CoinLister",
		)
	}

	if driverIs[chain.CoinReader](harness) == absent(CoinSource) {
		t.Errorf(
			"a driver is a chain.CoinReader exactly when its network spends outputs, which " +
				"control.CoinLister then lists",
		)
	}

	if absent(BlockScanner) && absent(AddressScanner) {
		t.Errorf("the driver sees no payments: implement chain.BlockScanner or chain.AddressScanner")
	}
}
