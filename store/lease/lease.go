// Package lease gives work in progress an owner, without trusting clocks.
//
// A lease is a row: a name (the work), an owner and a fence number that rises when the owner changes. The
// holder calls Check inside every transaction that stores a result. If another process took over meanwhile,
// the transaction fails with fault.LeaseLost, and the results, signatures included, are discarded. For a
// moment two processes may believe that they hold a lease, but only one of them can write.
//
// A lease has no deadline. Its owner names the heartbeat row of a process: a lease named "process/N", whose
// fence rises with every beat and whose owner is the session of the process that beats. A lease is held as
// long as its owner's session owns that heartbeat. A process that stops gives its heartbeat up, and all its
// leases are free at once. One that no longer beats loses its heartbeat to any process that saw it stand
// still for a lease's length, by the observer's own monotonic clock (package internal/heartbeat).
package lease

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// Lease is one row.
type Lease struct {
	// Name identifies the work, such as "watch/sepolia" or "wallet/sepolia/0x…", or a heartbeat. Unique.
	Name string
	// Owner is the Owner that holds the lease, or a heartbeat's session; empty after Release.
	Owner string
	// Fence rises by one whenever the owner changes, and with every beat of a heartbeat; it starts at 1.
	Fence int64
	// UpdatedAt is when the row was written, by its writer's clock. Nothing is decided by it.
	UpdatedAt time.Time
	// Note is what the process of a heartbeat says to the others; empty for other leases. Nothing is decided by it.
	Note string
}

// Tx is the transaction that lease operations run in.
type Tx interface {
	// Lease returns the lease of a name and locks its row until the transaction ends; ok is false,
	// and l zero, when there is none.
	Lease(ctx context.Context, name string) (l Lease, ok bool, err error)
	// PutLease stores a lease under its name, and replaces any that exists.
	PutLease(ctx context.Context, l Lease) error
}

// DB runs a closure in one transaction; it may run the closure again after a conflict.
type DB interface {
	Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
}

// ownerParts separates the parts of an owner.
const ownerParts = "#"

// HeartbeatName returns the name of the n-th heartbeat row, from 1.
func HeartbeatName(n int) string { return "process/" + strconv.Itoa(n) }

// Owner returns the owner of a lease: a turn of work in the session that owns a heartbeat. None of the three
// may contain "#".
func Owner(heartbeat, session, turn string) string {
	return heartbeat + ownerParts + session + ownerParts + turn
}

// Take acquires the lease of a name for owner. ok is false, and l zero, when another owner holds it. at is stored as
// UpdatedAt.
func Take(
	ctx context.Context,
	tx Tx,
	name, owner string,
	at time.Time,
) (l Lease, ok bool, err error) {
	taken, err := TakeAll(ctx, tx, []string{name}, owner, at)
	if err != nil || len(taken) == 0 {
		return Lease{}, false, err
	}

	return taken[0], true, nil
}

// TakeAll acquires the leases of several names for owner, and returns those that no other owner holds, by name. It
// locks the leases in the order of their names, and the heartbeats of others after them: two that take the same never
// wait for each other.
func TakeAll(
	ctx context.Context,
	tx Tx,
	names []string,
	owner string,
	at time.Time,
) (taken []Lease, err error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	rows := make([]Lease, len(names))
	holders := map[string]bool{}

	for i, name := range names {
		row, found, err := tx.Lease(ctx, name)
		if err != nil {
			return nil, err
		}

		if !found {
			row = Lease{Name: name}
		}

		rows[i] = row
		holders[row.Owner] = false
	}

	for _, holder := range slices.Sorted(maps.Keys(holders)) {
		if holders[holder], err = isHeld(ctx, tx, holder); err != nil {
			return nil, err
		}
	}

	for _, row := range rows {
		switch {
		case row.Owner == owner:
		case holders[row.Owner]:
			continue
		default:
			row.Owner, row.Fence, row.UpdatedAt = owner, row.Fence+1, at
			if err := tx.PutLease(ctx, row); err != nil {
				return nil, err
			}
		}

		taken = append(taken, row)
	}

	return taken, nil
}

// isHeld reports whether the session of an owner still owns its heartbeat.
func isHeld(ctx context.Context, tx Tx, owner string) (bool, error) {
	heartbeat, rest, ok := strings.Cut(owner, ownerParts)
	if !ok {
		return false, nil
	}

	session, _, _ := strings.Cut(rest, ownerParts)
	beat, found, err := tx.Lease(ctx, heartbeat)

	return found && beat.Owner == session, err
}

// Check verifies, inside the transaction that stores a result, that l is still held: the same owner under
// the same fence. A lease whose heartbeat was lost and that no other process took is still held. Errors:
//   - fault.LeaseLost: another process took the lease, or it was released
func Check(ctx context.Context, tx Tx, l Lease) error {
	now, found, err := tx.Lease(ctx, l.Name)
	if err != nil {
		return err
	}

	if !found || now.Owner != l.Owner || now.Fence != l.Fence {
		return fault.New(
			fault.LeaseLost, "lease_lost",
			"another process took over %s; the results of this attempt were thrown away",
			l.Name,
		)
	}

	return nil
}

// Release frees a lease, so that another process may take it at once. It does nothing
// to a lease that was lost.
func Release(ctx context.Context, tx Tx, l Lease) error {
	now, found, err := tx.Lease(ctx, l.Name)
	if err != nil || !found || now.Owner != l.Owner || now.Fence != l.Fence {
		return err
	}

	now.Owner = ""

	return tx.PutLease(ctx, now)
}
