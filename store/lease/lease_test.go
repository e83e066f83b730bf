package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/store/lease"
)

type rows map[string]lease.Lease

func (r rows) Leases(_ context.Context, names []string) (map[string]lease.Lease, error) {
	found := map[string]lease.Lease{}

	for _, name := range names {
		if l, ok := r[name]; ok {
			found[name] = l
		}
	}

	return found, nil
}

func (r rows) ReadLeases(ctx context.Context, names []string) (map[string]lease.Lease, error) {
	return r.Leases(ctx, names)
}

func (r rows) ReplaceLease(ctx context.Context, was, l lease.Lease) error {
	if now := r[l.Name]; now.Owner != was.Owner || now.Fence != was.Fence {
		return fault.New(fault.Conflict, "version_conflict", "%s was changed", l.Name)
	}

	return r.PutLease(ctx, l)
}

func (r rows) PutLease(_ context.Context, l lease.Lease) error { r[l.Name] = l; return nil }

// beat moves a heartbeat, or gives it up for an empty session.
func (r rows) beat(n int, session string) {
	name := leases.HeartbeatName(n)
	r[name] = lease.Lease{Name: name, Owner: session, Fence: r[name].Fence + 1}
}

func TestTakeCheckRelease(t *testing.T) {
	ctx, tx, at := t.Context(), rows{}, time.Unix(1000, 0)
	ownerA, ownerB := leases.Owner(
		leases.HeartbeatName(1),
		"a",
		"1",
	), leases.Owner(
		leases.HeartbeatName(2),
		"b",
		"1",
	)

	tx.beat(1, "a")
	tx.beat(2, "b")

	a, ok, err := leases.Take(ctx, tx, "watch/x", ownerA, at)
	if err != nil || !ok || a.Fence != 1 {
		t.Fatalf("first take: %+v %v %v", a, ok, err)
	}

	// No time that passes, and no clock, frees it.
	if _, ok, _ := leases.Take(ctx, tx, "watch/x", ownerB, at.Add(time.Hour)); ok {
		t.Fatal("b took a lease of a process that has its heartbeat")
	}

	other := leases.Owner(leases.HeartbeatName(1), "a", "2")
	if _, ok, _ := leases.Take(ctx, tx, "watch/x", other, at); ok {
		t.Fatal("another turn of one process took its lease")
	}

	a, ok, _ = leases.Take(ctx, tx, "watch/x", ownerA, at)
	if !ok || a.Fence != 1 {
		t.Fatalf("taken again by its holder: %+v %v", a, ok)
	}

	tx.beat(1, "")

	if err := leases.Check(ctx, tx, a); err != nil {
		t.Fatalf("a lease without a heartbeat that nobody took is held: %v", err)
	}

	b, ok, _ := leases.Take(ctx, tx, "watch/x", ownerB, at)
	if !ok || b.Fence != 2 {
		t.Fatalf("b after a gave its heartbeat up: %+v %v", b, ok)
	}

	if err := leases.Check(ctx, tx, a); !errors.Is(err, fault.LeaseLost) {
		t.Fatalf("a still writes after b took over: %v", err)
	}

	if err := leases.Check(ctx, tx, b); err != nil {
		t.Fatal(err)
	}

	if err := leases.Release(ctx, tx, a); err != nil || tx["watch/x"].Owner != ownerB {
		t.Fatalf("a's release took b's lease away: %v %+v", err, tx["watch/x"])
	}

	if err := leases.Release(ctx, tx, b); err != nil {
		t.Fatal(err)
	}

	c, ok, _ := leases.Take(ctx, tx, "watch/x", ownerA, at)
	if !ok || c.Fence != 3 {
		t.Fatalf("after a release: %+v %v", c, ok)
	}

	// a has it again, but what a began before b had it was begun on what may be no longer so.
	if err := leases.Check(ctx, tx, a); !errors.Is(err, fault.LeaseLost) {
		t.Fatalf("a still writes under its first fence: %v", err)
	}

	if err := leases.Check(ctx, tx, c); err != nil {
		t.Fatal(err)
	}
}

// A lease is free when its owner's session no longer owns the heartbeat: another has it, or there is none.
func TestLeaseOfAnotherSessionIsFree(t *testing.T) {
	for name, owner := range map[string]string{
		"another session has the heartbeat": leases.Owner(leases.HeartbeatName(1), "before", "1"),
		"the heartbeat was never there":     leases.Owner(leases.HeartbeatName(9), "a", "1"),
		"the owner names no heartbeat":      "a process",
		"it was released":                   "",
	} {
		tx := rows{"work": {Name: "work", Owner: owner, Fence: 4}}
		tx.beat(1, "now")
		tx.beat(2, "b")

		taken, ok, err := leases.Take(
			t.Context(), tx, "work", leases.Owner(leases.HeartbeatName(2), "b", "1"), time.Unix(1000, 0),
		)
		if err != nil || !ok || taken.Fence != 5 {
			t.Errorf("%s: %+v %v %v", name, taken, ok, err)
		}
	}
}
