package kv

import (
	"slices"
	"strings"
	"time"
)

// upTo returns the bound above all columns whose first part is at most v: the records that are due or mined
// by then.
func upTo(v any) key { return after(keyOf(v)) }

// since returns the bound of columns that start with a time at or after t.
func since(t time.Time) key {
	if whole := t.Truncate(time.Microsecond); whole.Before(t) {
		return upTo(whole)
	}

	return keyOf(t)
}

// passes reports whether a filter is empty or contains the value.
func passes[T comparable](wanted []T, value T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, value)
}

// within reports whether t is at or after one time and before another; a zero time is no bound.
func within(t, after, before time.Time) bool {
	return (after.IsZero() || !t.Before(after)) && (before.IsZero() || t.Before(before))
}

// starts reports whether one of the values starts with q, without case; with q "" it is true.
func starts(q string, values ...string) bool {
	q = strings.ToLower(q)

	return q == "" ||
		slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(strings.ToLower(v), q) })
}
