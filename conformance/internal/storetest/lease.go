package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// oneLease returns the lease of a name.
func oneLease(ctx context.Context, tx lease.Tx, name string) (l lease.Lease, ok bool, err error) {
	rows, err := tx.Leases(ctx, []string{name})
	l, ok = rows[name]

	return l, ok, err
}

// beat puts a heartbeat of a session, moved.
func beat(ctx context.Context, tx lease.Tx, n int, session string) error {
	row, _, err := oneLease(ctx, tx, leases.HeartbeatName(n))
	if err != nil {
		return err
	}

	row = lease.Lease{Name: leases.HeartbeatName(n), Owner: session, Fence: row.Fence + 1, UpdatedAt: epoch}

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
			owner := leases.Owner(leases.HeartbeatName(n+1), fmt.Sprint("s", n), "turn")
			_, r.taken, err = leases.Take(ctx, tx, "watch/net", owner, epoch)

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
		row, ok, err := oneLease(ctx, tx, leases.HeartbeatName(1))
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
			owner := leases.Owner(leases.HeartbeatName(n), session, "turn")
			l, ok, err = leases.Take(ctx, tx, "wallet/net", owner, epoch)

			return err
		})

		return l, ok
	}
	write := func(l lease.Lease, id string) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			if err := tx.PutInvoice(ctx, &invoice.Invoice{ID: id}); err != nil {
				return err
			}

			return leases.Check(ctx, tx, l)
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

	update(t, st, func(ctx context.Context, tx store.Tx) error { return leases.Release(ctx, tx, b) })

	if c, ok := take(3, "c"); !ok || c.Fence != 3 {
		t.Errorf("after it was given back: %+v %v", c, ok)
	}
}

// testLeases asks for several leases at once, in another order than that of their names, one of them twice.
func testLeases(t *testing.T, st store.Store) {
	asked := []string{"wallet/12"}
	want := map[string]lease.Lease{}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := 11; n >= 0; n-- {
			name := fmt.Sprintf("wallet/%d", n)
			asked = append(asked, name)

			want[name] = lease.Lease{
				Name:      name,
				Owner:     fmt.Sprint("owner ", n),
				Fence:     int64(n + 1),
				UpdatedAt: epoch,
			}
			if err := tx.PutLease(ctx, want[name]); err != nil {
				return err
			}
		}

		return nil
	})

	asked = append(asked, "wallet/3", "")

	for range 2 { // what is asked for does not come to be
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			got, err := tx.Leases(ctx, asked)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%d leases instead of %d: %+v (%v)", len(got), len(want), got, err)
			}

			none, err := tx.Leases(ctx, nil)
			if len(none) > 0 {
				t.Errorf("without a name: %+v", none)
			}

			return err
		})
	}
}

// testConcurrentLeases moves the same leases, which the first makes, from many goroutines. Each names them in another
// order.
func testConcurrentLeases(t *testing.T, st store.Store) {
	const rows = 12

	results := concurrently(func(n int) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			var names []string
			for i := range rows {
				names = append(names, fmt.Sprint("work/", (i*5+n)%rows))
			}

			found, err := tx.Leases(ctx, names)
			if err != nil {
				return err
			}

			for _, name := range names {
				if err := tx.PutLease(
					ctx,
					lease.Lease{Name: name, Owner: "o", Fence: found[name].Fence + 1},
				); err != nil {
					return err
				}
			}

			return nil
		})
	})

	for _, err := range results {
		if err != nil {
			t.Error(err)
		}
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for i := range rows {
			row, _, err := oneLease(ctx, tx, fmt.Sprint("work/", i))
			if err != nil || row.Fence != goroutines {
				t.Errorf("after %d moves lease %d has fence %d (%v)", goroutines, i, row.Fence, err)
			}
		}

		return nil
	})
}

// testLeaseOrder has a transaction wait for a lease: it holds those before it, and none that comes after it, whatever
// the order in which it named them. Where a transaction keeps all others out, there is no order.
func testLeaseOrder(t *testing.T, st store.Store) {
	const longest = 10 * time.Second

	lock := func(ctx context.Context, names ...string) error {
		return st.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Leases(ctx, names)
			return err
		})
	}
	isFree := func(name string, within time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()

		locked := make(chan error, 1) // a store that keeps all others out may wait longer than the context

		go func() { locked <- lock(ctx, name) }()

		select {
		case err := <-locked:
			return err == nil
		case <-ctx.Done():
			return false
		}
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for _, name := range []string{"a", "b", "c", "z"} {
			if err := tx.PutLease(ctx, lease.Lease{Name: name, Owner: "o", Fence: 1}); err != nil {
				return err
			}
		}

		return nil
	})

	holding, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 2)

	go func() {
		ended <- st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			if _, err := tx.Leases(ctx, []string{"b"}); err != nil {
				return err
			}

			close(holding)
			<-release

			return nil
		})
	}()

	<-holding

	if isFree("z", time.Second) {
		waited := make(chan error, 1)
		go func() { waited <- lock(t.Context(), "c", "b", "a") }()

		until := time.Now().Add(longest)
		for len(waited) == 0 && isFree("a", 50*time.Millisecond) && time.Now().Before(until) {
		}

		if !isFree("c", longest) {
			t.Error("a transaction that waits for lease b holds lease c")
		}

		defer func() { ended <- <-waited }()
	}

	close(release)

	if err := <-ended; err != nil {
		t.Error(err)
	}
}
