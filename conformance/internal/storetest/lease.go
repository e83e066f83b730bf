package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// testConcurrentLease lets processes fight for a lease that does not exist yet: one gets it.
func testConcurrentLease(t *testing.T, st store.Store) {
	type result struct {
		taken bool
		err   error
	}

	results := concurrently(func(n int) (r result) {
		r.err = st.Update(t.Context(), func(ctx context.Context, tx store.Tx) (err error) {
			process := fmt.Sprint("process ", n)
			_, r.taken, err = lease.Take(ctx, tx, "watch/net", process, epoch, time.Minute)

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

// testLease has two processes that believe in the same lease: only the one with its fence can write.
func testLease(t *testing.T, st store.Store) {
	take := func(owner string, at time.Time) (l lease.Lease, ok bool) {
		update(t, st, func(ctx context.Context, tx store.Tx) (err error) {
			l, ok, err = lease.Take(ctx, tx, "wallet/net", owner, at, time.Minute)
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

	a, ok := take("a", epoch)
	if !ok || a.Fence != 1 {
		t.Fatalf("the first take: %+v %v", a, ok)
	}

	if held, ok := take("b", epoch.Add(59*time.Second)); ok || held.Owner != "a" {
		t.Fatalf("b took a lease that had not run out: %+v", held)
	}

	b, ok := take("b", epoch.Add(time.Minute))
	if !ok || b.Fence != 2 {
		t.Fatalf("b after the deadline: %+v %v", b, ok)
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

	if c, ok := take("c", epoch.Add(time.Minute)); !ok || c.Fence != 3 {
		t.Errorf("after it was given back: %+v %v", c, ok)
	}
}
