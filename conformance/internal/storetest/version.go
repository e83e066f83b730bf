package storetest

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

// Versions tests which puts conflict, which are duplicates, and what is unique beside the key.
func Versions(t *testing.T, factory Factory) {
	t.Helper()

	cases := uniqueCases()

	for _, kind := range recordKinds() {
		cases = append(cases, testCase{
			"Version/" + kind.name(),
			func(t *testing.T, st store.Store) { testVersion(t, st, kind) },
		})
	}

	run(t, factory, cases)
}

func testVersion(t *testing.T, st store.Store, kind recordKind) {
	record := kind.new(0, 10)
	update(t, st, putOf(kind, record))

	if !kind.unique() {
		update(t, st, putOf(kind, kind.new(0, 500)))
		return
	}

	expectError(
		t, st, fault.Duplicate, "a put of a new record whose key exists",
		putOf(kind, kind.new(0, 500)),
	)
	expectError(
		t, st, fault.Duplicate, "a second put of a new record in one transaction",
		func(ctx context.Context, tx store.Tx) error {
			return putOf(kind, kind.new(1, 500), kind.new(1, 900))(ctx, tx)
		},
	)

	if kind.version(record) != nil {
		testWrongVersion(t, st, kind, record)
		testStaleVersion(t, st, kind, record)
	}
}

// putOf returns a closure that puts records.
func putOf(kind recordKind, records ...any) closure {
	return func(ctx context.Context, tx store.Tx) error {
		for _, record := range records {
			if err := kind.put(ctx, tx, record); err != nil {
				return err
			}
		}

		return nil
	}
}

// testWrongVersion puts versions that were never stored. A put that fails leaves the caller's version
// as it was.
func testWrongVersion(t *testing.T, st store.Store, kind recordKind, record any) {
	t.Helper()

	for _, wrong := range []int64{2, 3, -1} {
		other := kind.renew(record, 0, 500)
		*kind.version(other) = wrong
		expectError(
			t, st, fault.Conflict, "a put under a version that is not the stored one", putOf(kind, other),
		)

		if version := *kind.version(other); version != wrong {
			t.Errorf("a put that failed leaves version %d in the caller's hands, want %d", version, wrong)
		}
	}

	none := kind.new(5, 500)
	*kind.version(none) = 1
	expectError(t, st, fault.Conflict, "a put of a later version of what does not exist", putOf(kind, none))
}

// testStaleVersion puts a record twice in one transaction, then a copy that was read before them.
func testStaleVersion(t *testing.T, st store.Store, kind recordKind, record any) {
	t.Helper()

	stale := kind.renew(record, 0, 700)

	update(t, st, putOf(kind, record, record))

	if version := *kind.version(record); version != 3 {
		t.Errorf("two more puts left version %d, want 3", version)
	}

	expectError(
		t, st, fault.Conflict, "a put of a record that was changed since it was read", putOf(kind, stale),
	)
	expectError(
		t, st, fault.Conflict, "a put that was overtaken in its own transaction",
		func(ctx context.Context, tx store.Tx) error {
			return putOf(kind, kind.renew(record, 0, 700), kind.renew(record, 0, 800))(ctx, tx)
		},
	)
	expectRead(t, st, kind, "after puts that failed", record)
}
