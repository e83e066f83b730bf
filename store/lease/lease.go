// Package lease gives work in progress an owner and a deadline.
//
// A lease is a row: a name (the work), an owner (a process), a deadline and a fence number that rises when
// the owner changes. The holder calls Check inside every transaction that stores a result. If another
// process took over meanwhile, the transaction fails with fault.LeaseLost, and the results, signatures
// included, are discarded. For a moment two processes may believe that they hold a lease, but only one of
// them can write.
package lease

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// Lease is one row.
type Lease struct {
	// Name identifies the work, such as "watch/sepolia" or "wallet/sepolia/0x…". Unique.
	Name string
	// Owner is the process that holds the lease; empty after Release.
	Owner string
	// Fence rises by one whenever the owner changes; it starts at 1.
	Fence int64
	// ExpiresAt is the deadline: from then on any process may take the lease.
	ExpiresAt time.Time
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

// Take acquires or prolongs the lease of a name for owner until now+ttl. ok is false when another owner's
// lease has not expired; l is then that lease.
func Take(
	ctx context.Context,
	tx Tx,
	name, owner string,
	now time.Time,
	ttl time.Duration,
) (l Lease, ok bool, err error) {
	l, found, err := tx.Lease(ctx, name)
	switch {
	case err != nil:
		return Lease{}, false, err
	case !found:
		l = Lease{Name: name, Owner: owner, Fence: 1}
	case l.Owner == owner:
		// Prolonged by its holder: the fence stays.
	case l.Owner != "" && now.Before(l.ExpiresAt):
		return l, false, nil
	default:
		l.Owner, l.Fence = owner, l.Fence+1
	}

	l.ExpiresAt = now.Add(ttl)

	return l, true, tx.PutLease(ctx, l)
}

// Check verifies, inside the transaction that stores a result, that l is still held: the same owner under
// the same fence. An expired lease that no other process took is still held. Errors:
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

// Prolong checks the lease like Check and moves its deadline to until. A holder calls it in each
// transaction of a long operation.
func Prolong(ctx context.Context, tx Tx, l Lease, until time.Time) error {
	if err := Check(ctx, tx, l); err != nil {
		return err
	}

	l.ExpiresAt = until

	return tx.PutLease(ctx, l)
}

// Release frees a lease before its deadline, so that another process may take it at once. It does nothing
// to a lease that was lost.
func Release(ctx context.Context, tx Tx, l Lease) error {
	now, found, err := tx.Lease(ctx, l.Name)
	if err != nil || !found || now.Owner != l.Owner || now.Fence != l.Fence {
		return err
	}

	now.Owner = ""

	return tx.PutLease(ctx, now)
}
