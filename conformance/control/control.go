// Package control declares the operations of the driver suite on the network under test. The harness of a
// test node implements them: Base, and as many of the others as its network allows.
package control

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
)

// Base holds the operations of every harness. It acts for other people: nothing is signed with the keys of
// conformance.DriverHarness.Signer. Amounts are in base units.
//
// An operation may return any error; the suite ends the subtest with it.
type Base interface {
	// NewAddress returns an address without history that belongs to no key of conformance.DriverHarness.Signer.
	NewAddress(ctx context.Context) (chain.Address, error)

	// Fund gives an address coins that it can spend when Fund returns. It may mine blocks.
	Fund(ctx context.Context, to chain.Address, asset chain.Asset, amount chain.Amount) error

	// Pay sends a payment from outside and returns its hash. It waits in the pool until Mine. Payments must
	// not depend on each other: each needs a sender or coins of its own, since a fork may keep any one of
	// them alone.
	Pay(
		ctx context.Context,
		to chain.Address,
		asset chain.Asset,
		amount chain.Amount,
	) (txHash string, err error)

	// Mine makes n blocks, the first of which includes the waiting transactions of the pool.
	Mine(ctx context.Context, n int) error

	// Settle returns when the node should show the effects of the operations so far. The suite still polls.
	Settle(ctx context.Context) error
}

// Forker makes forks.
type Forker interface {
	// Fork replaces the newest depth blocks by depth + 1 others. The first of these includes the transactions
	// whose hashes are in keep. The other transactions of the old blocks are in no block; they may wait in
	// the pool again.
	Fork(ctx context.Context, depth int, keep ...string) error
}

// ZeroPayer sends payments of 0.
type ZeroPayer interface {
	// PayZero sends 0 of an asset and returns the hash. It waits in the pool.
	PayZero(ctx context.Context, to chain.Address, asset chain.Asset) (txHash string, err error)
}

// FailingPayer sends payments that fail in a block.
type FailingPayer interface {
	// PayFailing sends a payment that will be included and fail. It waits in the pool.
	PayFailing(
		ctx context.Context,
		to chain.Address,
		asset chain.Asset,
		amount chain.Amount,
	) (txHash string, err error)
}

// CheapPayer sends payments whose fee is below the one that the driver considers current.
type CheapPayer interface {
	// PayCheap sends a payment that waits in the pool.
	PayCheap(
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

// Pruner makes the node forget old blocks.
type Pruner interface {
	// Prune makes the node forget the blocks below a height.
	Prune(ctx context.Context, below uint64) error
}

// Expirer lets transactions expire, on networks where they do.
type Expirer interface {
	// Expire returns when the transaction has expired: after enough blocks or time, it can no longer be
	// included.
	Expire(ctx context.Context, tx chain.Signed) error
}

// CoinLister lists outputs, on networks that spend outputs (UTXO).
type CoinLister interface {
	// Coins returns the confirmed, unspent outputs of a party.
	Coins(ctx context.Context, owner chain.Party) ([]chain.Coin, error)
}

// VariablePayer sends payments whose amount is known only after their execution.
type VariablePayer interface {
	// PayVariable sends a payment that claims an amount while it waits in the pool, like a fee-on-transfer
	// token or a contract. In its block it transfers another amount, above 0.
	PayVariable(
		ctx context.Context,
		to chain.Address,
		asset chain.Asset,
		claimed, moved chain.Amount,
	) (txHash string, err error)
}

// NodeFaker makes the node that the driver asks first give wrong answers, where the driver has at least two.
// The other nodes stay right. Each call adds another wrong answer.
type NodeFaker interface {
	// Deny makes the node deny a transaction, by its hash and in its pool. The node's blocks still hold it.
	Deny(ctx context.Context, txHash string) error

	// HideLogs makes the node show a transaction by its hash, or its receipt, without its transfers.
	HideLogs(ctx context.Context, txHash string) error

	// ShowOther makes the node show another block with another hash at a height.
	ShowOther(ctx context.Context, height uint64) error

	// Silence makes the other nodes stop answering.
	Silence(ctx context.Context) error
}

// StrayPayer sends payments that no balance shows. Drivers that are chain.StrayLister need it.
type StrayPayer interface {
	// PayStray sends an amount, in base units, that no balance counts: of something that is no enabled asset,
	// or to an account other than the counted one. It returns the account that holds the amount. The payment
	// waits in the pool. Each call pays an account of its own.
	PayStray(ctx context.Context, to chain.Address, amount chain.Amount) (account chain.Address, err error)
}

// NonceOpener opens nonce accounts. Drivers that are chain.DurableNonces need it, unless none of them are configured.
type NonceOpener interface {
	// OpenNonce opens a nonce account of an address, which Driver and Unreachable then return in
	// NonceAccounts. The account is usable when OpenNonce returns. It may mine blocks.
	OpenNonce(ctx context.Context, owner chain.Address) (account chain.Address, err error)
}

// HeaderUpgrader changes headers as an upgrade of a network does.
type HeaderUpgrader interface {
	// UpgradeHeaders gives the blocks of every node header fields that the driver does not know.
	UpgradeHeaders(ctx context.Context) error
}
