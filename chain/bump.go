package chain

import (
	"context"
	"time"
)

// Bumper builds CPFP bumps (child pays for parent), on networks that spend outputs. A transaction of ours
// spends a waiting payment to us and pays the fee for both.
type Bumper interface {
	// BumpAfter returns how long a payment waits in the pool before it may be bumped; on is false when
	// the driver is configured to bump none.
	BumpAfter() (after time.Duration, on bool)
	// Bump returns the order that bumps a waiting coin of ours. Its one output pays the coin's whole
	// amount back to the coin's owner; the fee comes out of coins of the wallet, among those given. ok is
	// false when nothing is to be done: the coin does not wait, its transaction pays enough, the coins do
	// not cover the fee, or the fee is more than is allowed for such an amount. A node that does not
	// report the fees of waiting transactions is fault.Unsupported.
	Bump(ctx context.Context, coin Coin, wallet Party, coins []Coin) (order Order, ok bool, err error)
}
