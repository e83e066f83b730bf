package conformance

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance/control"
	"github.com/seed-8ee7f392/payments/conformance/internal/drivertest"
)

// DriverHarness is a driver with the network that it reads.
type DriverHarness struct {
	// Driver is the driver under test.
	Driver chain.Driver

	// Network changes the network that Driver reads. It may also implement control.Forker, control.ZeroPayer and
	// the others of that package.
	Network control.Base

	// Signer holds the keys that the suite sends with. None of them has a history on the network.
	Signer chain.Signer

	// Absent declares the parts that the driver or its network does not have. The suite fails for a part that
	// is neither there nor declared absent, for one that is both, and for any name that is not one of these:
	//
	//   - an optional interface of package chain, such as "chain.Mempool"
	//   - an optional interface of the controls, such as "control.Forker"
	//   - "DriverHarness.Unreachable" and "DriverHarness.Misconfigured"
	//   - "token assets": no asset is of kind chain.Token
	//   - "replacement of transactions": no transaction displaces another one that waits in the pool
	Absent []string

	// Unreachable is the same driver configured for a node that does not answer.
	Unreachable chain.Driver

	// Misconfigured is the driver configured as another network than its node serves.
	Misconfigured chain.Driver

	// BadAddresses are refused by ParseAddress: wrong checksums, addresses of the other mode.
	BadAddresses []string

	// Spellings maps valid addresses that are not in canonical form to that form.
	Spellings map[string]chain.Address

	// Patience is the time that the suite waits for the node to show a change. Defaults to 10 s.
	Patience time.Duration
}

// TestDriver tests a driver against the interfaces of package chain:
//
//   - Capabilities: missing capabilities are declared absent, and no others.
//   - Driver: the network is complete, heads are ordered, RefAt follows forks, addresses are
//     canonical.
//   - TipReader: the tip alone is that of the head.
//   - BlockScanner, AddressScanner, Mempool, Finder: each transfer is found once, with the same
//     index in pool and block, and with the amount and the spends of its block, failed transactions
//     included; forks and pruned ranges are reported.
//   - HeadNotifier: each new block is announced, and the end of the context ends the subscription.
//   - Agreed, AgreedNonce: two nodes are asked, and one alone decides nothing.
//   - Balancer: balances are those of the requested block.
//   - Keys: derivation needs no node and refuses malformed keys.
//   - RequestURIBuilder: the parameters of a request do not change the payment that its URI asks for.
//   - Sender, Orders, Replacement, Batcher: transactions make the ordered payments within the order's fee. They are
//     final exactly when Network.Rule says so of their block, and dead only when that is final.
//   - DurableNonces: a chain has one of all transactions at one nonce, they never expire, and one is dead only when
//     a final block shows the nonce used.
//   - NamedCoins: Order.Spends are spent.
//   - FeeChecker: a transaction built at current fees pays enough, together with its unconfirmed parents.
//   - GasReader, FitChecker: a transaction that a contract refused did not lack gas, and a built one fits
//     into a block.
//   - InputPricer: the price of each coin is the amount that it adds.
//   - Decoder: unsigned bytes alone show the payments, the fee and the signed data.
//   - StrayLister, Recoverer: money that no balance shows is listed, and moved as it is.
//   - Sweeper: a release balances to the base unit.
//   - Bumper: a transaction of ours pays the fee of a waiting one (CPFP).
//   - Calls: contexts, outages and concurrent calls, for every call that reaches a node.
//
// The factory is called once per subtest. The harnesses may share a node if their signers' keys
// differ and nobody else mines. The suite polls, and takes amounts from the network's assets.
func TestDriver(t *testing.T, factory func(t *testing.T) DriverHarness) {
	drivertest.Run(t, func(t *testing.T) drivertest.Harness { return driverHarness(factory(t)) })
}

// driverHarness returns a harness in the suite's own types.
func driverHarness(h DriverHarness) drivertest.Harness {
	return drivertest.Harness{
		Driver:        h.Driver,
		Network:       h.Network,
		Signer:        h.Signer,
		Absent:        h.Absent,
		Unreachable:   h.Unreachable,
		Misconfigured: h.Misconfigured,
		BadAddresses:  h.BadAddresses,
		Spellings:     h.Spellings,
		Patience:      h.Patience,
	}
}
