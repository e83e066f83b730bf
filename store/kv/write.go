package kv

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/seed-8ee7f392/payments/fault"
)

// put stores a record. If it has a version, put compares it with the stored version and raises it, in the
// caller's record too.
func put[T any](ctx context.Context, tx *transaction, t *table[T], record *T) error {
	return write(ctx, tx, t, record, t.checkVersion)
}

// add stores a record without a version that must not exist yet.
func add[T any](ctx context.Context, tx *transaction, t *table[T], record *T) error {
	return write(ctx, tx, t, record, t.checkNew)
}

// write stores a record unless check(stored, record) returns an error; stored is nil if there is none.
func write[T any](
	ctx context.Context,
	tx *transaction,
	t *table[T],
	record *T,
	check func(before, record *T) error,
) error {
	return tx.write(ctx, func(b Writer) error {
		at := t.recordKey(record)

		before, err := t.load(b, at)
		if err != nil {
			return tx.breakWith(err)
		}

		if err := check(before, record); err != nil {
			return err
		}

		row := t.clone(record)
		if t.version != nil {
			*t.version(row)++
		}

		changes, err := t.changes(b, at, before, row)
		if err != nil {
			return err
		}

		if t.version != nil {
			tx.raise(t.version(record))
		}

		return tx.breakWith(t.replace(b, at, row, changes))
	})
}

// putAll stores records in their order.
func putAll[T any](ctx context.Context, tx *transaction, t *table[T], records []*T) error {
	for _, record := range records {
		if err := put(ctx, tx, t, record); err != nil {
			return err
		}
	}

	return nil
}

// checkVersion compares the version of a put record with that of the stored one.
func (t *table[T]) checkVersion(before, record *T) error {
	if t.version == nil {
		return nil
	}

	switch version := *t.version(record); {
	case before != nil && version == 0:
		return t.duplicate(record)
	case before == nil && version != 0, before != nil && *t.version(before) != version:
		return fault.New(
			fault.Conflict, "version_conflict",
			"%s %s was changed by somebody else since it was read; run the operation again",
			t.object, label(t.key(record)),
		)
	}

	return nil
}

// checkNew refuses a record that exists.
func (t *table[T]) checkNew(before, record *T) error {
	if before != nil {
		return t.duplicate(record)
	}

	return nil
}

// change is the effect of a put on one index: the entry to delete and the entry to add; nil for none.
type change struct{ gone, made key }

// changes returns the effects of a new row at a storage key on the indexes, or fault.Duplicate if a unique
// index already has its columns.
func (t *table[T]) changes(b Reader, at key, before, row *T) ([]change, error) {
	all := make([]change, 0, len(t.indexes))

	for _, ix := range t.indexes {
		c := change{ix.entry(at, before), ix.entry(at, row)}
		if bytes.Equal(c.gone, c.made) {
			continue
		}

		if ix.unique && c.made != nil {
			taken, err := b.Get(c.made)
			if err != nil {
				return nil, err
			}

			if taken != nil {
				return nil, t.duplicate(row)
			}
		}

		all = append(all, c)
	}

	return all, nil
}

// replace writes a row, or deletes it if row is nil, with the changes of its indexes.
func (t *table[T]) replace(b Writer, at key, row *T, changes []change) error {
	for _, c := range changes {
		if c.gone != nil {
			if err := b.Delete(c.gone); err != nil {
				return err
			}
		}

		if c.made != nil {
			if err := b.Put(c.made, at); err != nil {
				return err
			}
		}
	}

	if row == nil {
		return b.Delete(at)
	}

	return t.save(b, at, row)
}

func (t *table[T]) duplicate(record *T) error {
	return fault.New(
		fault.Duplicate, "duplicate", "%s %s, or one with the same unique value, already exists",
		t.object, label(t.key(record)),
	)
}

// label returns a key in readable form.
func label(k key) string {
	return strconv.Quote(strings.TrimSuffix(strings.ReplaceAll(string(k), textEnd, "/"), "/"))
}

// remove deletes the record under a storage key, if there is one.
func remove[T any](ctx context.Context, tx *transaction, t *table[T], at key) error {
	return tx.write(ctx, func(b Writer) error {
		before, err := t.load(b, at)
		if err != nil || before == nil {
			return tx.breakWith(err)
		}

		var gone []change
		for _, ix := range t.indexes {
			gone = append(gone, change{gone: ix.entry(at, before)})
		}

		return tx.breakWith(t.replace(b, at, nil, gone))
	})
}
