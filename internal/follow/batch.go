// Package follow reads networks, one Follower for each: money in.
//
// A Follower (follower.go) reads blocks, checks that each is the child of the one before, walks back over
// a fork, and hands what it found to a block handler in batches. The cursor (how far it got, and the
// hashes it trusts) moves in the same transaction in which the handler stores what the batch holds, by
// compare-and-set on (height, hash): a crash at any point loses nothing and repeats nothing, and two
// processes that follow the same network by mistake cannot both move it. Reorganisation logic exists here
// and nowhere else. Which addresses are ours is one indexed query of the handler.
package follow

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
)

// Batch is a stretch of canonical blocks and what is known of the chain around it.
type Batch struct {
	Network chain.Network
	// Blocks are ascending and linked, starting right after From; empty when only Head moved.
	Blocks []chain.Block
	// Pool are waiting transactions; only set on batches that reach the tip.
	Pool []chain.PoolTx
	// PoolRead says that the pool was read, so that a transaction missing from it is not waiting there.
	PoolRead bool
	// Head is the node's view when the batch was read.
	Head chain.Head
	// Rewound is set when the chain forked: every stored sighting in a block above ForkedFrom that is not
	// in Blocks left the chain. They reach as far as was read before, unless the other branch is shorter.
	Rewound bool
	// ForkedFrom is the newest block that both branches share.
	ForkedFrom chain.Ref
	// Backfill is set for blocks read again for the addresses of one Range; the cursor does not move.
	Backfill *scan.Range

	advance func(ctx context.Context, tx scan.Tx) (scan.Cursor, error)
}

// Advance moves the cursor inside tx, as the first thing a sink does, and returns it as it is then. It
// fails with fault.LeaseLost when another process follows the network now or moved the cursor first.
func (b Batch) Advance(ctx context.Context, tx scan.Tx) (scan.Cursor, error) {
	return b.advance(ctx, tx)
}

// Sink stores what a batch holds, in one transaction that begins with Batch.Advance.
type Sink interface {
	Apply(ctx context.Context, b Batch) error
}
