package chain

import (
	"context"
	"time"
)

// Bumper has waiting transactions of others included, on networks that spend outputs: a transaction
// of ours that spends what they pay us pays the fee for both (child pays for parent).
type Bumper interface {
	// LiftAfter returns how long a payment waits in the pool before it may be lifted; on is false
	// when the driver is configured to lift none.
	BumpAfter() (after time.Duration, on bool)
	// Lift returns the order that lifts a waiting coin of ours: its one output pays the coin's
	// whole amount back to the coin's owner, and the fee comes out of coins of the wallet, of which
	// those given may be spent. ok is false when nothing is to be done: the coin does not wait, its
	// transaction pays enough, the coins do not cover the fee, or that is more than is allowed for
	// such an amount. A node that does not say what waiting transactions pay is fault.Unsupported.
	Bump(ctx context.Context, coin Coin, wallet Party, coins []Coin) (order Order, ok bool, err error)
}
