// Package scan holds the records of reading a network, and the interfaces that a store implements for them:
//   - Cursor: how far the network was read
//   - Position: how far an address was read
//   - Range: blocks to read again
//   - Retry: a transfer that could not be stored yet
//
// The follower that moves them is internal/follow, one for all networks. A store implements Reader and
// Tx; store.Store and store.Tx contain them.
package scan

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// Cursor records how far a network has been read.
type Cursor struct {
	// Network is the slug; unique.
	Network string
	// At is the last block whose transfers are stored.
	At chain.Ref
	// Tip is the newest block that the node showed when the cursor moved. Displayed confirmations are counted
	// from it.
	Tip chain.Ref
	// Final is the newest block known to be final by the network's own rule; zero when it has none.
	Final chain.Ref
	// Safe is the same for the safe rule.
	Safe chain.Ref
	// Recent are trusted blocks below At, newest first, dense near the tip and sparse further down. A
	// walk-back over a fork searches them for a common block.
	Recent []chain.Ref
	// Stopped is the reason why the network was stopped; empty while it runs. A stopped network is not read
	// until a person clears it (Engine.Resume).
	Stopped string
	// Version is the store's; see store.Tx.
	Version   int64
	UpdatedAt time.Time
}

// Position records how far the history of one address was read, on a network that is read by address
// (chain.AddressPoller). An address without a row was never read, or has no history yet.
type Position struct {
	// Network is a slug; Network and Address are the key.
	Network string
	Address chain.Address
	// Read is the driver's own position: chain.AddressCursor.Position.
	Read      string
	UpdatedAt time.Time
	Version   int64
}

// Range is a series of blocks to read again for some addresses, because the follower may have passed these
// blocks already. The addresses were imported, or made inside a host's transaction.
type Range struct {
	ID        string
	Network   string
	Addresses []chain.Address
	// Next is the next height to read, To the last one (the cursor's height when the row was made).
	Next, To  uint64
	Version   int64
	CreatedAt time.Time
}

// Retry is a transfer that could not be stored with its batch for a reason of its own: a host's hook refused
// it, or a record was damaged. It is stored in the transaction that moves the cursor, so that one bad record
// never stalls a network. It is tried again until it succeeds.
type Retry struct {
	ID       string
	Network  string
	Transfer chain.Transfer
	Block    chain.Ref
	// Error is the last error, for people.
	Error     string
	Attempts  int
	DueAt     time.Time
	CreatedAt time.Time
	Version   int64
}

// Reader reads what the follower stored.
type Reader interface {
	CursorReader
	// Positions returns the rows of a network for those of the addresses that have one, in any order.
	Positions(ctx context.Context, network string, addresses []chain.Address) ([]Position, error)
	// Ranges returns up to limit back-fill rows of a network, oldest first.
	Ranges(ctx context.Context, network string, limit int) ([]Range, error)
	// Retries returns up to limit retry rows of a network with DueAt ≤ now, oldest first.
	Retries(ctx context.Context, network string, now time.Time, limit int) ([]Retry, error)
}

// CursorReader reads the cursors of networks.
type CursorReader interface {
	// Cursor returns the cursor of a network; ok is false, and c zero, before its first batch.
	Cursor(ctx context.Context, network string) (c Cursor, ok bool, err error)
}

// Tx is the part of a store transaction that the follower uses.
type Tx interface {
	Reader
	lease.Tx
	PutCursor(ctx context.Context, c *Cursor) error
	PutPosition(ctx context.Context, p *Position) error
	PutRange(ctx context.Context, r *Range) error
	// DeleteRange deletes a row; an absent one is no error.
	DeleteRange(ctx context.Context, id string) error
	PutRetry(ctx context.Context, r *Retry) error
	// DeleteRetry deletes a row; an absent one is no error.
	DeleteRetry(ctx context.Context, id string) error
}
