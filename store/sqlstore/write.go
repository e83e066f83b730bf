package sqlstore

// This file buffers writes: puts of versioned records, unversioned rows and deletions.

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// write is one buffered row.
type write struct {
	slot, table, object string
	key                 []any
	text                func(*write) (template string, args []any)
	values              []any // nil: deleted
	base                int64 // the version that the stored row must have
	version             int64
	one                 bool        // exactly one row must change
	certain             bool        // changes exactly one row or fails
	fresh               *into       // the insert of a row that must be new; else nil
	proof               string      // the query that counts the new row by its key; else ""
	also                []insertion // dependent rows inserted with a new row
	// wait is how long the statement may wait for a lock; 0: without a limit.
	wait time.Duration
}

// raised is a version that a Put raised in a caller's record.
type raised struct {
	version *int64
	before  int64
}

func conflict(object, label string) error {
	return fault.New(
		fault.Conflict, "version_conflict",
		"%s %s was changed by somebody else since it was read; run the operation again",
		object, label,
	)
}

func duplicate(object, label string) error {
	return fault.New(
		fault.Duplicate, "duplicate", "%s %s, or one with the same unique value, already exists",
		object, label,
	)
}

// put buffers a versioned record and raises the version in the caller's record.
func put[T any](ctx context.Context, tx *transaction, t *table[T], record *T) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}

	v := t.version(record)
	base := *v
	*v++

	values, err := t.values(record)
	if err != nil {
		*v = base
		return err
	}

	slot := t.slot(values)

	merged, err := tx.mergePut(t.object, slot, values, values[:t.slots], base)
	if err != nil {
		*v = base
		return err
	}

	if !merged {
		tx.buffer(versionedWrite(t, slot, record, values, base))
	}

	tx.raised = append(tx.raised, raised{v, base})
	rememberValues(tx.store.homes, t, values)

	return nil
}

// mergePut replaces the values of a row that is already buffered, so that one statement is enough; merged is
// false if the row is not buffered. Errors:
//   - fault.Duplicate: base is 0 and the buffered row exists
//   - fault.Conflict: base is not the version of the buffered row, or the row is buffered as deleted
func (tx *transaction) mergePut(
	object, slot string,
	values, key []any,
	base int64,
) (merged bool, err error) {
	buffered := tx.rows[slot]

	switch {
	case buffered == nil, buffered.values == nil && base == 0:
		return false, nil
	case buffered.values == nil:
		return false, conflict(object, label(key))
	case buffered.version == base:
		buffered.values, buffered.version = values, base+1
		return true, nil
	case base == 0:
		return false, duplicate(object, label(key))
	}

	return false, conflict(object, label(key))
}

// versionedWrite returns the insert of a record if base is 0, else the update of the version base.
func versionedWrite[T any](t *table[T], slot string, record *T, values []any, base int64) *write {
	w := &write{
		slot:    slot,
		table:   t.name,
		object:  t.object,
		key:     values[:t.slots],
		values:  values,
		base:    base,
		version: base + 1,
		one:     true,
		certain: base == 0,
	}

	w.text = func(w *write) (string, []any) {
		if w.base == 0 {
			return t.insert, w.values
		}

		args := make([]any, 0, len(w.values)+1)
		args = append(append(args, w.values[t.keys:]...), w.values[:t.keys]...)

		return t.update, append(args, w.base)
	}

	if base == 0 {
		w.fresh, w.proof = t.into, t.exists
		if t.also != nil {
			w.also = t.also(record)
		}
	}

	return w
}

func putAll[T any](ctx context.Context, tx *transaction, t *table[T], records []*T) error {
	for _, record := range records {
		if err := put(ctx, tx, t, record); err != nil {
			return err
		}
	}

	return nil
}

// add buffers an unversioned record that must not exist yet.
func add[T any](ctx context.Context, tx *transaction, t *table[T], record *T) error {
	return putUnversioned(ctx, tx, t, record, t.insert, t.into)
}

// set buffers an unversioned record that replaces the stored one.
func set[T any](ctx context.Context, tx *transaction, t *table[T], record *T) error {
	return putUnversioned(ctx, tx, t, record, t.upsert(tx.store.dialect), nil)
}

// putUnversioned buffers a record without a version under a statement. fresh is set when the row must
// be new.
func putUnversioned[T any](
	ctx context.Context,
	tx *transaction,
	t *table[T],
	record *T,
	template string,
	fresh *into,
) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}

	values, err := t.values(record)
	if err != nil {
		return err
	}

	k := values[:t.slots]

	slot := t.slot(k)
	if w := tx.rows[slot]; w != nil && w.values != nil {
		if fresh != nil {
			return duplicate(t.object, label(k))
		}

		w.values = values

		return nil
	}

	w := &write{
		slot:    slot,
		table:   t.name,
		object:  t.object,
		key:     k,
		values:  values,
		one:     fresh != nil, // databases count a replaced row differently
		certain: true,
		fresh:   fresh,
		text:    func(w *write) (string, []any) { return template, w.values },
	}
	if fresh != nil {
		w.proof = t.exists
	}

	tx.buffer(w)

	return nil
}

// remove buffers a deletion.
func remove[T any](ctx context.Context, tx *transaction, t *table[T], k ...any) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}

	tx.buffer(&write{
		slot:   t.slot(k),
		table:  t.name,
		object: t.object,
		key:    k,
		text:   func(*write) (string, []any) { return t.deletion, k },
	})

	return nil
}

func (tx *transaction) buffer(w *write) {
	if tx.rows == nil {
		tx.rows = make(map[string]*write, 8)
		tx.writes, tx.dirty = make([]*write, 0, 8), make([]string, 0, 4)
	}

	tx.writes = append(tx.writes, w)
	if w.proof != "" {
		tx.proof = proof{w.proof, w.key}
	}

	if !slices.Contains(tx.dirty, w.table) {
		tx.dirty = append(tx.dirty, w.table)
	}

	if w.slot != "" {
		tx.rows[w.slot] = w
	}
}
