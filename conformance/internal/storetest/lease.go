package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// beat puts a heartbeat of a session, moved.
func beat(ctx context.Context, tx lease.Tx, n int, session string) error {
	row, _, err := tx.Lease(ctx, lease.HeartbeatName(n))
	if err != nil {
		return err
	}

	row = lease.Lease{Name: lease.HeartbeatName(n), Owner: session, Fence: row.Fence + 1, UpdatedAt: epoch}

	return tx.PutLease(ctx, row)
}

// testConcurrentLease lets processes fight for a lease that does not exist yet: one gets it.
func testConcurrentLease(t *testing.T, st store.Store) {
	type result struct {
		taken bool
		err   error
	}

	for n := range goroutines {
		update(
			t,
			st,
			func(ctx context.Context, tx store.Tx) error { return beat(ctx, tx, n+1, fmt.Sprint("s", n)) },
		)
	}

	results := concurrently(func(n int) (r result) {
		r.err = st.Update(t.Context(), func(ctx context.Context, tx store.Tx) (err error) {
			owner := lease.Owner(lease.HeartbeatName(n+1), fmt.Sprint("s", n), "turn")
			_, r.taken, err = lease.Take(ctx, tx, "watch/net", owner, epoch)

			return err
		})

		return r
	})

	taken := 0

	for _, r := range results {
		if r.err != nil {
			t.Error(r.err)
		}

		if r.taken {
			taken++
		}
	}

	if taken != 1 {
		t.Errorf("%d processes hold one lease", taken)
	}
}

// testConcurrentHeartbeat lets processes fight for a heartbeat that does not exist yet: each beat counts.
func testConcurrentHeartbeat(t *testing.T, st store.Store) {
	results := concurrently(func(n int) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			return beat(ctx, tx, 1, fmt.Sprint("s", n))
		})
	})

	beats := int64(0)

	for _, err := range results {
		if err != nil {
			t.Error(err)
			continue
		}

		beats++
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		row, ok, err := tx.Lease(ctx, lease.HeartbeatName(1))
		if !ok || row.Fence != beats {
			t.Errorf("after %d beats the fence is %d (%v)", beats, row.Fence, ok)
		}

		return err
	})
}

// testLease has two processes that believe in the same lease: only the one with its fence can write.
func testLease(t *testing.T, st store.Store) {
	take := func(n int, session string) (l lease.Lease, ok bool) {
		update(t, st, func(ctx context.Context, tx store.Tx) (err error) {
			owner := lease.Owner(lease.HeartbeatName(n), session, "turn")
			l, ok, err = lease.Take(ctx, tx, "wallet/net", owner, epoch)

			return err
		})

		return l, ok
	}
	write := func(l lease.Lease, id string) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			if err := tx.PutInvoice(ctx, &invoice.Invoice{ID: id}); err != nil {
				return err
			}

			return lease.Check(ctx, tx, l)
		})
	}

	for n, session := range []string{"a", "b", "c"} {
		update(t, st, func(ctx context.Context, tx store.Tx) error { return beat(ctx, tx, n+1, session) })
	}

	a, ok := take(1, "a")
	if !ok || a.Fence != 1 {
		t.Fatalf("the first take: %+v %v", a, ok)
	}

	if held, ok := take(2, "b"); ok {
		t.Fatalf("b took a lease of a process that beats: %+v", held)
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return beat(ctx, tx, 1, "") })

	b, ok := take(2, "b")
	if !ok || b.Fence != 2 {
		t.Fatalf("b after the heartbeat of a was lost: %+v %v", b, ok)
	}

	if err := write(a, recordID(0)); !errors.Is(err, fault.LeaseLost) {
		t.Errorf("a process whose lease was taken over wrote (%v)", err)
	}

	if _, err := st.InvoiceByID(t.Context(), recordID(0)); !errors.Is(err, fault.NotFound) {
		t.Errorf("its results remain (%v)", err)
	}

	if err := write(b, recordID(1)); err != nil {
		t.Errorf("the holder cannot write: %v", err)
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return lease.Release(ctx, tx, b) })

	if c, ok := take(3, "c"); !ok || c.Fence != 3 {
		t.Errorf("after it was given back: %+v %v", c, ok)
	}
}
