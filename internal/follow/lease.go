package follow

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// rereadLease is the time for which a lease that was read counts as still ours. Every write checks it anyway.
const rereadLease = heartbeat.LeaseFor / 2

// holdLease takes the lease, or reads it again, and reports whether this process holds it.
func (f *Follower) holdLease(ctx context.Context) (bool, error) {
	if f.yielded {
		if _, err := f.Driver.Head(ctx); err != nil {
			return false, fmt.Errorf("asking %s for its tip: %w", f.network.Slug, err)
		}
	}

	owner, err := f.Heartbeat.Owner(ctx)
	if err != nil {
		return false, err
	}

	now := f.Now()
	if f.lease.Owner != "" && f.Heartbeat.Holds(f.lease.Owner) {
		if since := now.Sub(f.checked); since >= 0 && since < rereadLease {
			return true, nil
		}

		owner = f.lease.Owner
	}

	var (
		taken lease.Lease
		ok    bool
	)

	err = f.DB.Update(ctx, func(ctx context.Context, tx scan.Tx) (err error) {
		taken, ok, err = leases.Take(ctx, tx, f.name, owner, now)
		return err
	})
	if err != nil {
		f.Heartbeat.Abandon(f.name, owner)
		f.lease = lease.Lease{}

		return false, fmt.Errorf("taking the lease of %s: %w", f.network.Slug, err)
	}

	if !ok {
		taken = lease.Lease{}
	}

	f.lease, f.checked, f.health.Following, f.yielded = taken, now, ok, false

	return ok, nil
}

// yield releases the lease until the node answers again.
func (f *Follower) yield(ctx context.Context) {
	f.yielded = true

	if err := f.release(ctx); err != nil {
		f.Log.WarnContext(ctx, "a lease could not be given up", "network", f.network.Slug, "error", err)
	}
}

// Release frees the lease, so that another process may follow the network at once.
func (f *Follower) Release(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	defer f.publish()

	f.endReading()

	return f.release(ctx)
}

func (f *Follower) release(ctx context.Context) error {
	if f.lease.Owner == "" {
		return nil
	}

	freed := f.lease
	f.lease, f.checked, f.health.Following = lease.Lease{}, time.Time{}, false

	return f.Heartbeat.Release(ctx, freed)
}
