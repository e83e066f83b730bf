package drivertest

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
)

// Controls are conformance.Controls: what a harness does on its network besides reading it. The
// interfaces below it are the optional controls of the same names.
type Controls interface {
	NewAddress(ctx context.Context) (chain.Address, error)
	Fund(ctx context.Context, to chain.Address, asset chain.Asset, amount chain.Amount) error
	Pay(
		ctx context.Context,
		to chain.Address,
		asset chain.Asset,
		amount chain.Amount,
	) (txHash string, err error)
	Mine(ctx context.Context, n int) error
	Settle(ctx context.Context) error
}

// Forker replaces blocks.
type Forker interface {
	Fork(ctx context.Context, depth int, keep ...string) error
}

// ZeroPayer sends payments of 0.
type ZeroPayer interface {
	PayZero(ctx context.Context, to chain.Address, asset chain.Asset) (txHash string, err error)
}

// FailingPayer sends payments that are included and fail.
type FailingPayer interface {
	PayFailing(
		ctx context.Context,
		to chain.Address,
		asset chain.Asset,
		amount chain.Amount,
	) (txHash string, err error)
}

// CheapPayer sends payments below the current fee.
type CheapPayer interface {
	PayCheap(
		ctx context.Context,
		to chain.Address,
		asset chain.Asset,
		amount chain.Amount,
	) (txHash string, err error)
}

// Freezer makes destinations unpayable.
type Freezer interface {
	Freeze(ctx context.Context, address chain.Address, asset chain.Asset) error
}

// Pruner makes the node forget old blocks.
type Pruner interface {
	Prune(ctx context.Context, below uint64) error
}

// Expirer lets transactions expire.
type Expirer interface {
	Expire(ctx context.Context, tx chain.Signed) error
}

// CoinLister lists unspent outputs.
type CoinLister interface {
	Coins(ctx context.Context, owner chain.Party) ([]chain.Coin, error)
}

// VariablePayer sends payments whose block moves another amount than their pool shows.
type VariablePayer interface {
	PayVariable(
		ctx context.Context,
		to chain.Address,
		asset chain.Asset,
		claimed, moved chain.Amount,
	) (txHash string, err error)
}

// NodeFaker makes one of several nodes lie.
type NodeFaker interface {
	Deny(ctx context.Context, txHash string) error
	HideLogs(ctx context.Context, txHash string) error
	ShowOther(ctx context.Context, height uint64) error
	Silence(ctx context.Context) error
}

// StrayPayer pays what no balance shows.
type StrayPayer interface {
	PayStray(ctx context.Context, to chain.Address, amount chain.Amount) (account chain.Address, err error)
}

// NonceOpener opens nonce accounts.
type NonceOpener interface {
	OpenNonce(ctx context.Context, owner chain.Address) (account chain.Address, err error)
}

// HeaderUpgrader changes the network's headers.
type HeaderUpgrader interface {
	UpgradeHeaders(ctx context.Context) error
}
