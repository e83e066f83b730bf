package memory

// This file makes the keys, buckets and ranks of the tables.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/event"
)

// join returns one key made of several parts.
func join(parts ...string) string { return strings.Join(parts, "\x00") }

func ownerKey(o event.Owner) string {
	if o.Livemode {
		return join(o.AccountID, "live")
	}

	return join(o.AccountID, "test")
}

// number formats a number so that it sorts as text.
func number(n uint64) string { return fmt.Sprintf("%020d", n) }

// moment formats a time so that it sorts as text; the zero time is first.
func moment(t time.Time) string {
	if t.IsZero() {
		return number(0)
	}

	return number(uint64(t.UnixMicro()) + 1<<63)
}

// until returns the highest rank of rows with a moment up to t.
func until(t time.Time) string { return join(moment(t), "\xff") }

// due reports whether a time is set and not after now.
func due(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// passes reports whether a filter is empty or contains the value.
func passes[T comparable](wanted []T, value T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, value)
}

// within reports whether t is at or after one time and before another; a zero time is no bound.
func within(t, after, before time.Time) bool {
	return (after.IsZero() || !t.Before(after)) && (before.IsZero() || t.Before(before))
}

// starts reports whether one of the values starts with q, without case; every value does with "".
func starts(q string, values ...string) bool {
	q = strings.ToLower(q)

	return q == "" ||
		slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(strings.ToLower(v), q) })
}
