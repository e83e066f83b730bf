// Package lease gives work in progress an owner, without trusting clocks.
//
// A lease is a row: a name (the work), an owner and a fence number that rises when the owner changes. The
// holder calls leases.Check (package internal/leases) inside every transaction that stores a result. If
// another process took over meanwhile, the transaction fails with fault.LeaseLost, and the results,
// signatures included, are discarded. For a moment two processes may believe that they hold a lease, but only
// one of them can write.
//
// A lease has no deadline. Its owner names the heartbeat row of a process: a lease named "process/N", whose
// fence rises with every beat and whose owner is the session of the process. A lease is held as long as its
// owner's session owns that heartbeat. A process that stops gives up its heartbeat, and all its leases are
// free at once. If a heartbeat stands still, any process that has seen that for a lease's length, by its own
// monotonic clock, may take it (package internal/heartbeat).
package lease

import (
	"context"
	"time"
)

// Lease is one row.
type Lease struct {
	// Name identifies the work, such as "watch/sepolia" or "wallet/sepolia/0x…", or a heartbeat. Unique.
	Name string
	// Owner is the Owner that holds the lease, or a heartbeat's session; empty after Release.
	Owner string
	// Fence rises by one whenever the owner changes, and with every beat of a heartbeat; it starts at 1.
	Fence int64
	// UpdatedAt is when the row was written, by its writer's clock. No decision uses it.
	UpdatedAt time.Time
	// Note is the message of a heartbeat's process to the others; empty for other leases. No decision uses
	// it.
	Note string
}

// Tx has the lease operations of a transaction.
type Tx interface {
	// Leases returns the leases of some names by name, without those that do not exist, and locks the rows
	// until the transaction ends. It locks them in the byte order of the names, in whatever order they are
	// given. It also locks names that do not exist. A name that is given twice counts once.
	Leases(ctx context.Context, names []string) (map[string]Lease, error)
	// ReadLeases returns the same as Leases, but neither locks a row nor waits for a row that another
	// transaction has locked. Any of the rows may change before this transaction ends.
	ReadLeases(ctx context.Context, names []string) (map[string]Lease, error)
	// ReplaceLease stores l in place of was, the lease of its name that was read; was is zero if there was
	// none. Errors, by the end of the transaction:
	//   - fault.Conflict: the stored lease has another owner or fence than was
	ReplaceLease(ctx context.Context, was, l Lease) error
	// PutLease stores a lease under its name, and replaces any that exists.
	PutLease(ctx context.Context, l Lease) error
}
