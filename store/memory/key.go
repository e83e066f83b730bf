package memory

// This file makes the keys, buckets and ranks of the tables.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/event"
)

// join makes one key of several parts.
func join(parts ...string) string { return strings.Join(parts, "\x00") }

func ownerKey(o event.Owner) string {
	if o.Livemode {
		return join(o.AccountID, "live")
	}

	return join(o.AccountID, "test")
}

// number writes a number so that it sorts as text.
func number(n uint64) string { return fmt.Sprintf("%020d", n) }

// moment writes a time so that it sorts as text; the zero time comes first.
func moment(t time.Time) string {
	if t.IsZero() {
		return number(0)
	}

	return number(uint64(t.UnixMicro()) + 1<<63)
}

// until is the highest rank of rows that have a moment up to t and something after it.
func until(t time.Time) string { return join(moment(t), "\xff") }

// due reports whether a time is set and not after now.
func due(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// passes reports whether a filter of values lets one pass: when it is empty, or has it.
func passes[T comparable](wanted []T, value T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, value)
}

// within reports whether t is in the half-open stretch, each end of which may be open.
func within(t, after, before time.Time) bool {
	return (after.IsZero() || !t.Before(after)) && (before.IsZero() || t.Before(before))
}

// starts reports whether one of the values starts with q, without case; every value does with "".
func starts(q string, values ...string) bool {
	q = strings.ToLower(q)

	return q == "" ||
		slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(strings.ToLower(v), q) })
}
