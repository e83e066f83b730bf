package storetest

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// testReplacedLease has two transactions replace what both read: one of them runs again, and sees the other's.
func testReplacedLease(t *testing.T, st store.Store) {
	const name = "wallet/net"

	for _, was := range []lease.Lease{{}, {Owner: "a", Fence: 1}, {Owner: "a", Fence: 2}} {
		runs, l := 0, lease.Lease{Name: name, Owner: "a", Fence: was.Fence + 1, UpdatedAt: epoch, Note: "n"}

		update(t, st, func(ctx context.Context, tx store.Tx) error {
			rows, err := tx.ReadLeases(ctx, []string{name, "absent", name})
			if err != nil {
				return err
			}

			if read := rows[name]; len(rows) > 1 || read.Owner != was.Owner || read.Fence != was.Fence {
				t.Errorf("read %+v instead of %+v", rows, was)
			}

			if err := tx.ReplaceLease(ctx, was, l); err != nil {
				return err
			}

			if rows, err = tx.ReadLeases(ctx, []string{name}); !reflect.DeepEqual(rows[name], l) {
				t.Errorf("the transaction reads %+v of what it wrote (%v)", rows, err)
			}

			return err
		})

		for _, stale := range []lease.Lease{was, {Owner: "b", Fence: l.Fence}} {
			err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
				if runs++; runs > 1 {
					return nil // run again after a conflict
				}

				return tx.ReplaceLease(ctx, stale, lease.Lease{Name: name, Owner: "b", Fence: l.Fence + 1})
			})
			if err != nil || runs != 2 {
				t.Errorf("replacing %+v instead of %+v ran %d times (%v)", stale, l, runs, err)
			}

			runs = 0
		}

		update(t, st, func(ctx context.Context, tx store.Tx) error {
			now, _, err := oneLease(ctx, tx, name)
			if !reflect.DeepEqual(now, l) {
				t.Errorf("stored is %+v", now)
			}

			return err
		})
	}
}

// testHeldLeaseIsNotAwaited takes leases while their holder writes: the taker waits for nobody, and gets those that
// are free. Where a transaction keeps all others out, it waits for any.
func testHeldLeaseIsNotAwaited(t *testing.T, st store.Store) {
	owner := func(n int) string { return leases.Owner(leases.HeartbeatName(n), fmt.Sprint("s", n), "turn") }
	take := func(ctx context.Context, n int, names ...string) (taken []lease.Lease, err error) {
		err = st.Update(ctx, func(ctx context.Context, tx store.Tx) (err error) {
			taken, err = leases.TakeAll(ctx, tx, names, owner(n), epoch)
			return err
		})

		return taken, err
	}

	for n := range 2 {
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			return beat(ctx, tx, n+1, fmt.Sprint("s", n+1))
		})
	}

	held, err := take(t.Context(), 1, "wallet/1", "wallet/3")
	if err != nil || len(held) != 2 {
		t.Fatalf("the first taker has %+v (%v)", held, err)
	}

	holding, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)

	go func() {
		ended <- st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Leases(ctx, []string{leases.HeartbeatName(1), "wallet/1", "wallet/3"})

			close(holding)
			<-release

			return err
		})
	}()

	<-holding

	if within(t, 3*time.Second, func(ctx context.Context) error {
		_, err := take(ctx, 2, "another")
		return err
	}) == nil {
		var taken []lease.Lease

		err := within(t, 10*time.Second, func(ctx context.Context) (err error) {
			taken, err = take(ctx, 2, "wallet/3", "wallet/2", "wallet/1")
			return err
		})
		if err != nil || len(taken) != 1 || taken[0].Name != "wallet/2" {
			t.Errorf("beside a holder that writes, the taker has %+v (%v)", taken, err)
		}
	}

	close(release)

	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// within calls f with a context that ends after a time, and waits no longer: a store that keeps all others out may.
func within(t *testing.T, limit time.Duration, f func(ctx context.Context) error) error {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	ended := make(chan error, 1)

	go func() { ended <- f(ctx) }()

	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
