package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/lease"
)

type rows map[string]lease.Lease

func (r rows) Lease(_ context.Context, name string) (lease.Lease, bool, error) {
	l, ok := r[name]
	return l, ok, nil
}
func (r rows) PutLease(_ context.Context, l lease.Lease) error { r[l.Name] = l; return nil }

func TestTakeCheckRelease(t *testing.T) {
	ctx, tx, t0 := t.Context(), rows{}, time.Unix(1000, 0)

	a, ok, err := lease.Take(ctx, tx, "watch/x", "a", t0, time.Minute)
	if err != nil || !ok || a.Fence != 1 {
		t.Fatalf("first take: %+v %v %v", a, ok, err)
	}

	if _, ok, _ := lease.Take(ctx, tx, "watch/x", "b", t0.Add(59*time.Second), time.Minute); ok {
		t.Fatal("b took a lease that had not run out")
	}

	a, ok, _ = lease.Take(ctx, tx, "watch/x", "a", t0.Add(30*time.Second), time.Minute)
	if !ok || a.Fence != 1 || !a.ExpiresAt.Equal(t0.Add(90*time.Second)) {
		t.Fatalf("prolonged: %+v %v", a, ok)
	}

	b, ok, _ := lease.Take(ctx, tx, "watch/x", "b", t0.Add(90*time.Second), time.Minute)
	if !ok || b.Fence != 2 {
		t.Fatalf("b after the deadline: %+v %v", b, ok)
	}

	if err := lease.Check(ctx, tx, a); !errors.Is(err, fault.LeaseLost) {
		t.Fatalf("a still writes after b took over: %v", err)
	}

	if err := lease.Check(ctx, tx, b); err != nil {
		t.Fatal(err)
	}

	if err := lease.Prolong(
		ctx, tx, a, t0.Add(time.Hour),
	); !errors.Is(err, fault.LeaseLost) ||
		tx["watch/x"] != b {
		t.Fatalf("a prolonged what b took: %v %+v", err, tx["watch/x"])
	}

	if err := lease.Prolong(
		ctx, tx, b, t0.Add(3*time.Minute),
	); err != nil || !tx["watch/x"].ExpiresAt.Equal(t0.Add(3*time.Minute)) ||
		tx["watch/x"].Fence != 2 {
		t.Fatalf("b prolonged: %v %+v", err, tx["watch/x"])
	}

	if err := lease.Release(ctx, tx, a); err != nil || tx["watch/x"].Owner != "b" {
		t.Fatalf("a's release took b's lease away: %v %+v", err, tx["watch/x"])
	}

	if err := lease.Release(ctx, tx, b); err != nil {
		t.Fatal(err)
	}

	c, ok, _ := lease.Take(ctx, tx, "watch/x", "a", t0.Add(91*time.Second), time.Minute)
	if !ok || c.Fence != 3 {
		t.Fatalf("after a release: %+v %v", c, ok)
	}

	// a has it again, but what a began before b had it was begun on what may be no longer so.
	if err := lease.Check(ctx, tx, a); !errors.Is(err, fault.LeaseLost) {
		t.Fatalf("a still writes under its first fence: %v", err)
	}

	if err := lease.Check(ctx, tx, c); err != nil {
		t.Fatal(err)
	}
}
