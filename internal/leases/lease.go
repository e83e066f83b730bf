package leases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// DB runs a closure in one transaction; it may run the closure again after a conflict.
type DB interface {
	Update(ctx context.Context, f func(ctx context.Context, tx lease.Tx) error) error
}

// ownerParts separates the parts of an owner.
const ownerParts = "#"

// HeartbeatName returns the name of the n-th heartbeat row, from 1. Names sort like their numbers. So all
// readers lock rows in the same order, whether they read several at once or one after the other.
func HeartbeatName(n int) string { return fmt.Sprintf("process/%06d", n) }

// Owner returns the owner of a lease: a turn of work in the session that owns a heartbeat. None of the three
// may contain "#".
func Owner(heartbeat, session, turn string) string {
	return heartbeat + ownerParts + session + ownerParts + turn
}

// Take acquires the lease of a name for owner. ok is false, and l zero, when another owner holds it. at is stored as
// UpdatedAt.
func Take(
	ctx context.Context,
	tx lease.Tx,
	name, owner string,
	at time.Time,
) (l lease.Lease, ok bool, err error) {
	taken, err := TakeAll(ctx, tx, []string{name}, owner, at)
	if err != nil || len(taken) == 0 {
		return lease.Lease{}, false, err
	}

	return taken[0], true, nil
}

// TakeAll acquires the leases of several names for owner, and returns by name those that no other owner
// holds. It locks nothing before it writes, and waits for no holder. If another owner has taken a lease since
// it was read, the transaction ends in fault.Conflict.
func TakeAll(
	ctx context.Context,
	tx lease.Tx,
	names []string,
	owner string,
	at time.Time,
) (taken []lease.Lease, err error) {
	rows, err := tx.ReadLeases(ctx, names)
	if err != nil {
		return nil, err
	}

	held, err := heldBy(ctx, tx, rows)
	if err != nil {
		return nil, err
	}

	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		was := rows[name]

		switch {
		case was.Owner == owner:
			taken = append(taken, was)
		case held[was.Owner]:
		default:
			l := lease.Lease{Name: name, Owner: owner, Fence: was.Fence + 1, UpdatedAt: at, Note: was.Note}
			if err := tx.ReplaceLease(ctx, was, l); err != nil {
				return nil, err
			}

			taken = append(taken, l)
		}
	}

	return taken, nil
}

// heldBy returns, for each owner of some leases, whether its session still owns its heartbeat. It reads the
// heartbeats after the leases, and locks none: a session that has lost its heartbeat never owns one again.
func heldBy(ctx context.Context, tx lease.Tx, rows map[string]lease.Lease) (map[string]bool, error) {
	sessions := map[string]ownerSession{}

	for _, row := range rows {
		if s, ok := sessionOf(row.Owner); ok {
			sessions[row.Owner] = s
		}
	}

	if len(sessions) == 0 {
		return nil, nil
	}

	var heartbeats []string
	for _, s := range sessions {
		heartbeats = append(heartbeats, s.heartbeat)
	}

	beats, err := tx.ReadLeases(ctx, heartbeats)
	if err != nil {
		return nil, err
	}

	held := make(map[string]bool, len(sessions))
	for owner, s := range sessions {
		beat, found := beats[s.heartbeat]
		held[owner] = found && beat.Owner == s.session
	}

	return held, nil
}

// ownerSession is the heartbeat of an owner, and the session that must own it.
type ownerSession struct{ heartbeat, session string }

// sessionOf parses an owner; ok is false if it has no heartbeat.
func sessionOf(owner string) (s ownerSession, ok bool) {
	heartbeat, rest, ok := strings.Cut(owner, ownerParts)
	session, _, _ := strings.Cut(rest, ownerParts)

	return ownerSession{heartbeat, session}, ok
}

// Check verifies, inside the transaction that stores a result, that l is still held: the same owner under
// the same fence. A lease whose heartbeat was lost and that no other process took is still held. Errors:
//   - fault.LeaseLost: another process took the lease, or it was released
func Check(ctx context.Context, tx lease.Tx, l lease.Lease) error {
	rows, err := tx.Leases(ctx, []string{l.Name})
	if err != nil {
		return err
	}

	now, found := rows[l.Name]
	if !found || now.Owner != l.Owner || now.Fence != l.Fence {
		return fault.New(
			fault.LeaseLost, "lease_lost",
			"another process took over %s; the results of this attempt were thrown away",
			l.Name,
		)
	}

	return nil
}

// Release frees leases, so that another process may take them at once. It does nothing to a lost lease. A
// lease of fence 0 is freed with any stored fence if its owner still has it: a turn whose outcome is unknown
// does not know the fence.
func Release(ctx context.Context, tx lease.Tx, leases ...lease.Lease) error {
	names := make([]string, len(leases))
	for i, l := range leases {
		names[i] = l.Name
	}

	rows, err := tx.Leases(ctx, names)
	if err != nil {
		return err
	}

	for _, l := range leases {
		row, found := rows[l.Name]
		if !found || row.Owner != l.Owner || l.Fence != 0 && row.Fence != l.Fence {
			continue
		}

		row.Owner = ""
		rows[l.Name] = row

		if err := tx.PutLease(ctx, row); err != nil {
			return err
		}
	}

	return nil
}
