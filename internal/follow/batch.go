// Package follow reads networks, one Follower for each: money in.
//
// A Follower (follower.go) reads blocks (read.go), checks that each is the child of the one before,
// and walks back over a fork (fork.go). Networks without readable blocks are polled by address
// (poll.go). Each batch goes to a block handler (internal/ingest by way of internal/engine).
//
// The cursor holds how far the network was read and the hashes it trusts (cursor.go). It moves by
// compare-and-set on (height, hash), in the transaction in which the handler stores the batch. So a
// crash at any point loses nothing and repeats nothing, and two processes cannot both move it.
// Reorganisation logic exists only here. Which addresses are ours is one indexed query of the
// handler.
package follow

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
)

// Batch holds consecutive canonical blocks and the node's view of the chain around them.
type Batch struct {
	Network chain.Network
	// Blocks are ascending and linked, starting right after the cursor; empty when only Head moved.
	Blocks []chain.Block
	// Pool are waiting transactions; only set on batches that reach the tip.
	Pool []chain.PoolTx
	// PoolRead is set when the pool was read, so that a transaction missing from it is not waiting there.
	PoolRead bool
	// Head is the node's view when the batch was read.
	Head chain.Head
	// Rewound is set when the chain forked: every stored transfer in a block above ForkedFrom that is not in
	// Blocks left the chain. Blocks reach the height that was read before, unless the other branch is
	// shorter.
	Rewound bool
	// ForkedFrom is the newest block that both branches share.
	ForkedFrom chain.Ref
	// Backfill is set for blocks read again for the addresses of one Range; the cursor does not move.
	Backfill *scan.Range
	// Next is the cursor once the batch is stored; zero where the batch does not move it.
	Next scan.Cursor

	advance func(ctx context.Context, tx scan.Tx) (scan.Cursor, error)
	rereads bool      // the driver reads blocks again
	readAt  time.Time // when the batch was read

	// Of a chain.AddressPoller:
	round     *round
	unread    []chain.Unread
	positions []scan.Position
	failed    error // why some addresses could not be read
}

// Advance moves the cursor inside tx and returns the moved cursor. A block handler must call it first. If
// another process follows the network now or moved the cursor first, the error is fault.LeaseLost.
func (b Batch) Advance(ctx context.Context, tx scan.Tx) (scan.Cursor, error) {
	return b.advance(ctx, tx)
}

// BlockHandler handles batches of blocks.
type BlockHandler interface {
	// Apply stores what a batch holds, in one transaction that begins with Batch.Advance.
	Apply(ctx context.Context, b Batch) error
}
