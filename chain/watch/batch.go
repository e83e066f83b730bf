package watch

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
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
	Backfill *Range

	advance func(ctx context.Context, tx Tx) (Cursor, error)
}

// Advance moves the cursor inside tx, as the first thing a sink does, and returns it as it is then. It
// fails with fault.LeaseLost when another process follows the network now or moved the cursor first.
func (b Batch) Advance(ctx context.Context, tx Tx) (Cursor, error) { return b.advance(ctx, tx) }

// Sink stores what a batch holds, in one transaction that begins with Batch.Advance.
type Sink interface {
	Apply(ctx context.Context, b Batch) error
}
