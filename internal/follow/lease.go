package follow

import (
	"context"
	"fmt"

	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// holdLease takes or prolongs the lease, and reports whether this process holds it. It writes only when half
// of the lease is over.
func (f *Follower) holdLease(ctx context.Context) (bool, error) {
	now := f.Now()
	if f.lease.Owner == f.Owner && f.lease.ExpiresAt.Sub(now) > f.LeaseFor/2 {
		return true, nil
	}

	var (
		taken lease.Lease
		ok    bool
	)

	err := f.DB.Update(ctx, func(ctx context.Context, tx scan.Tx) (err error) {
		taken, ok, err = lease.Take(ctx, tx, f.name, f.Owner, now, f.LeaseFor)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("taking the lease of %s: %w", f.network.Slug, err)
	}

	if !ok {
		taken = lease.Lease{}
	}

	f.lease, f.health.Following = taken, ok

	return ok, nil
}

// Release frees the lease, so that another process may follow the network at once.
func (f *Follower) Release(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.lease.Owner == "" {
		return nil
	}

	freed := f.lease
	f.lease, f.health.Following = lease.Lease{}, false

	return f.DB.Update(ctx, func(ctx context.Context, tx scan.Tx) error {
		return lease.Release(ctx, tx, freed)
	})
}
