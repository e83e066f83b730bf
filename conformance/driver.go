// Package conformance holds the suites that make one implementation as good as another: TestDriver
// for chain drivers, TestSigner for signers, TestStore for stores.
//
// Each takes a factory and is for third parties too: an outsider's driver passes the same tests as
// the ones of this library, without a line of it being changed. Nothing here imports a driver, and
// nothing here asks for a name. What an implementation does not have it has to declare absent; what
// is neither there nor declared fails.
package conformance

// TestDriver: the suite for chain drivers, the harness it asks for, and the order of its parts.

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// Capability names something a driver or the network under test may have or lack.
type Capability string

// The capabilities of drivers are the optional interfaces of package chain.
const (
	BlockScanner   Capability = "chain.BlockScanner"
	AddressScanner Capability = "chain.AddressScanner"
	Mempool        Capability = "chain.Mempool"
	Finder         Capability = "chain.Finder"
	Balancer       Capability = "chain.Balancer"
	Deriver        Capability = "chain.Deriver"
	TokenAccounter Capability = "chain.TokenAccounter"
	URIBuilder     Capability = "chain.URIBuilder"
	FeeEstimator   Capability = "chain.FeeEstimator"
	Nonces         Capability = "chain.Nonces"
	Sender         Capability = "chain.Sender"
	Batcher        Capability = "chain.Batcher"
	Sweeper        Capability = "chain.Sweeper"
	Lifter         Capability = "chain.Lifter"
	Checker        Capability = "chain.Checker"
)

// The capabilities of the network under test: its assets, the harness' node, and its controls.
const (
	Tokens          Capability = "token assets"                // an asset of kind chain.Token
	UnreachableNode Capability = "DriverHarness.Unreachable"   // a driver whose node does not answer
	WrongNode       Capability = "DriverHarness.Misconfigured" // a driver whose node serves another network
	Forking         Capability = "conformance.Forker"          // the controls can make a fork
	ZeroPayments    Capability = "conformance.ZeroPayer"       // the network has payments of 0
	// the network has transactions that fail in a block
	FailedPayments Capability = "conformance.FailingPayer"
	// the network has destinations that cannot be paid
	Freezing   Capability = "conformance.Freezer"
	Pruning    Capability = "conformance.Pruner"     // the node can forget old blocks
	CoinSource Capability = "conformance.CoinLister" // the network spends outputs (UTXO)
	// the network takes payments that pay less than the current fee
	CheapPayments Capability = "conformance.CheapPayer"
	// These two show only in what transactions do: they are taken for granted unless they are
	// declared absent.
	Replacement Capability = "replacement of transactions" // a waiting transaction can be displaced
	// where transactions run out, the controls can wait for it
	Expiry Capability = "conformance.Expirer"
)

// Controls are what a harness can do on its network besides reading it through the driver. All of
// them act for other people: nothing is signed with the keys of DriverHarness.Signer.
type Controls interface {
	// NewAddress returns an address without history, of which nothing of ours has the key.
	NewAddress(ctx context.Context) (chain.Address, error)
	// Fund gives an address coins that it can spend when Fund returns. It may mine blocks.
	Fund(ctx context.Context, to chain.Address, asset chain.Asset, amount chain.Amount) error
	// Pay sends a payment from outside and returns its hash. It waits in the pool until Mine. Payments do not
	// depend on each other: a fork can keep any of them alone, so each needs a sender or coins of its own.
	Pay(
		ctx context.Context,
		to chain.Address,
		asset chain.Asset,
		amount chain.Amount,
	) (txHash string, err error)
	// Mine makes n blocks, the first of which includes what waits.
	Mine(ctx context.Context, n int) error
	// Settle returns when the node can be expected to show what was done. The suite still polls.
	Settle(ctx context.Context) error
}

// Forker makes forks.
type Forker interface {
	// Fork replaces the newest depth blocks by depth + 1 others. The first of these includes the transactions
	// to keep; the other ones of the old blocks are in none, whether they wait in the pool again or not.
	Fork(ctx context.Context, depth int, keep ...string) error
}

// ZeroPayer sends payments of 0.
type ZeroPayer interface {
	// PayZero sends 0 of an asset; it waits in the pool.
	PayZero(ctx context.Context, to chain.Address, asset chain.Asset) (txHash string, err error)
}

// FailingPayer sends payments that do not succeed.
type FailingPayer interface {
	// PayFailing sends a payment that will be included and fail; it waits in the pool.
	PayFailing(
		ctx context.Context,
		to chain.Address,
		asset chain.Asset,
		amount chain.Amount,
	) (txHash string, err error)
}

// Freezer makes destinations unpayable.
type Freezer interface {
	// Freeze makes every later transfer of the asset to the address fail.
	Freeze(ctx context.Context, address chain.Address, asset chain.Asset) error
}

// Pruner takes the past away.
type Pruner interface {
	// Prune makes the node forget the blocks below a height.
	Prune(ctx context.Context, below uint64) error
}

// Expirer lets transactions run out, on networks where they do.
type Expirer interface {
	// Expire lets so many blocks or so much time pass that the transaction can no longer be included.
	Expire(ctx context.Context, tx chain.Signed) error
}

// CoinLister lists the outputs of addresses of ours, on networks that spend outputs.
type CoinLister interface {
	// Coins returns the confirmed outputs of a party that nothing has spent.
	Coins(ctx context.Context, owner chain.Party) ([]chain.Coin, error)
}

// DriverHarness is a driver with the network that it reads.
type DriverHarness struct {
	// Driver is what is tested.
	Driver chain.Driver
	// Network is the other side of the wire; it may also implement Forker, ZeroPayer and so on.
	Network Controls
	// Signer holds the keys that the suite sends with. No key of it has a history on the network.
	Signer chain.Signer
	// Absent declares what driver or network do not have. What is neither there nor declared absent fails the
	// suite, and so does what is both.
	Absent []Capability
	// Unreachable is the same driver configured for a node that does not answer.
	Unreachable chain.Driver
	// Misconfigured is the driver configured as another network than its node serves.
	Misconfigured chain.Driver
	// BadAddresses are refused by ParseAddress: wrong checksums, addresses of the other mode.
	BadAddresses []string
	// Spellings are valid addresses that are not in canonical form, with that form.
	Spellings map[string]chain.Address
	// Patience is how long the suite waits for the node to show something. Defaults to 10 s.
	Patience time.Duration
}

// TestDriver holds a driver to every sentence of the interfaces in package chain. The factory is called once
// per subtest; the harnesses may share a node, as long as their signers' keys differ and nobody else mines.
// The suite never assumes that a node shows a change at once, and takes amounts from the network's assets.
func TestDriver(t *testing.T, factory func(t *testing.T) DriverHarness) {
	t.Run("Capabilities", func(t *testing.T) { testCapabilities(t, factory(t)) })

	for _, part := range driverParts {
		t.Run(part.name, func(t *testing.T) {
			probe := newDriverEnv(t, factory(t))
			for _, c := range part.needs {
				if !probe.has(c) {
					t.Skipf("declared absent: %s", c)
				}
			}

			for _, test := range part.tests {
				t.Run(test.name, func(t *testing.T) {
					e := newDriverEnv(t, factory(t))
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

type driverPart struct {
	name  string
	needs []Capability
	tests []driverTest
}

type driverTest struct {
	name  string
	needs []Capability
	run   func(e *driverEnv)
}

var driverParts = []driverPart{
	{"Driver", nil, headTests},
	{"BlockScanner", []Capability{BlockScanner}, blockTests},
	{"AddressScanner", []Capability{AddressScanner}, addressScanTests},
	{"Mempool", []Capability{Mempool}, poolTests},
	{"Finder", []Capability{Finder}, finderTests},
	{"Balancer", []Capability{Balancer}, balanceTests},
	{"Keys", nil, keyTests},
	{"Sender", []Capability{Sender}, senderTests},
	{"Orders", []Capability{Sender}, orderTests},
	{"Replacement", []Capability{Sender, Replacement}, replacementTests},
	{"Batcher", []Capability{Sender, Batcher}, batchTests},
	{"Sweeper", []Capability{Sweeper}, releaseTests},
	{"Lifter", []Capability{Lifter, Mempool, CoinSource}, liftTests},
	{"Calls", nil, callTests},
}

// driverCapabilities tells of each capability whether a harness has it.
var driverCapabilities = []struct {
	name Capability
	has  func(h DriverHarness) bool
}{
	{BlockScanner, driverIs[chain.BlockScanner]},
	{AddressScanner, driverIs[chain.AddressScanner]},
	{Mempool, driverIs[chain.Mempool]},
	{Finder, driverIs[chain.Finder]},
	{Balancer, driverIs[chain.Balancer]},
	{Deriver, driverIs[chain.Deriver]},
	{TokenAccounter, driverIs[chain.TokenAccounter]},
	{URIBuilder, driverIs[chain.URIBuilder]},
	{FeeEstimator, driverIs[chain.FeeEstimator]},
	{Nonces, driverIs[chain.Nonces]},
	{Sender, driverIs[chain.Sender]},
	{
		Batcher,
		func(h DriverHarness) bool { b, ok := h.Driver.(chain.Batcher); return ok && b.MaxOutputs() > 1 },
	},
	{Sweeper, driverIs[chain.Sweeper]},
	{Lifter, driverIs[chain.Lifter]},
	{Checker, driverIs[chain.Checker]},
	{UnreachableNode, func(h DriverHarness) bool { return h.Unreachable != nil }},
	{WrongNode, func(h DriverHarness) bool { return h.Misconfigured != nil }},
	{Forking, controlsAre[Forker]},
	{ZeroPayments, controlsAre[ZeroPayer]},
	{FailedPayments, controlsAre[FailingPayer]},
	{Freezing, controlsAre[Freezer]},
	{Pruning, controlsAre[Pruner]},
	{CoinSource, controlsAre[CoinLister]},
	{CheapPayments, controlsAre[CheapPayer]},
	{
		Tokens,
		func(h DriverHarness) bool {
			return slices.ContainsFunc(
				h.Driver.Network().Assets,
				func(a chain.Asset) bool { return a.Kind == chain.Token },
			)
		},
	},
}

func driverIs[T any](h DriverHarness) bool {
	_, ok := h.Driver.(T)
	return ok
}

func controlsAre[T any](h DriverHarness) bool {
	_, ok := h.Network.(T)
	return ok
}

func testCapabilities(t *testing.T, h DriverHarness) {
	known := []Capability{Replacement, Expiry}
	for _, c := range driverCapabilities {
		known = append(known, c.name)
		switch has, declared := c.has(h), slices.Contains(h.Absent, c.name); {
		case has && declared:
			t.Errorf(
				"%s is declared absent, but it is there: take it off DriverHarness.Absent so that it is tested",
				c.name,
			)
		case !has && !declared:
			t.Errorf("%s is missing: implement it, or declare it in DriverHarness.Absent", c.name)
		}
	}

	for _, c := range h.Absent {
		if !slices.Contains(known, c) {
			t.Errorf("DriverHarness.Absent names %q, which is no capability", c)
		}
	}

	absent := func(c Capability) bool { return slices.Contains(h.Absent, c) }
	if !absent(Sender) && absent(Deriver) {
		t.Errorf("a driver that sends has to derive the addresses it sends from: implement chain.Deriver")
	}

	if !absent(Sender) && absent(Balancer) && absent(CoinSource) {
		t.Errorf(
			"the amounts of sent transactions cannot be checked without chain.Balancer or conformance.CoinLister",
		)
	}

	if driverIs[chain.CoinReader](h) == absent(CoinSource) {
		t.Errorf(
			"a driver is a chain.CoinReader exactly when its network spends outputs, which " +
				"conformance.CoinLister then lists",
		)
	}

	if absent(BlockScanner) && absent(AddressScanner) {
		t.Errorf("the driver sees no payments: implement chain.BlockScanner or chain.AddressScanner")
	}
}
