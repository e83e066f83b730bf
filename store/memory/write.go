package memory

// This file writes rows in a transaction's own layer, and checks versions and unique values.

import (
	"context"

	"github.com/seed-8ee7f392/payments/fault"
)

// put stores a record. For versioned kinds it checks the version, and raises it in the caller's record.
func put[T any](ctx context.Context, tx *transaction, k *kind[T], record *T) error {
	key := k.key(record)

	before, err := lookup(ctx, &tx.reader, k, key)
	if err != nil {
		return err
	}

	row := k.clone(record)
	if k.version != nil {
		switch v := *k.version(record); {
		case before != nil && v == 0:
			return duplicate(k.object, key)
		case before == nil && v != 0, before != nil && *k.version(before) != v:
			return fault.New(
				fault.Conflict, "version_conflict",
				"%s %s was changed by somebody else since it was read; run the operation again",
				k.object, key,
			)
		}
	}

	for _, ix := range k.indexes {
		if !ix.unique {
			continue
		}

		if bucket, _, ok := ix.entryOf(row); ok {
			rows, err := scanStored(ctx, &tx.reader, ix, bucket, window[T]{})
			if err != nil {
				return err
			}

			if len(rows) > 0 && k.key(rows[0]) != key {
				return duplicate(k.object, key)
			}
		}
	}

	if k.version != nil {
		v := k.version(record)
		tx.raised = append(tx.raised, raised{v, *v})
		*v++
		*k.version(row) = *v
	}

	tx.own(k.slot).(*table[T]).set(key, row)

	return nil
}

// add stores an unversioned record that must not exist yet.
func add[T any](ctx context.Context, tx *transaction, k *kind[T], record *T) error {
	before, err := lookup(ctx, &tx.reader, k, k.key(record))
	if err != nil {
		return err
	}

	if before != nil {
		return duplicate(k.object, k.key(record))
	}

	return put(ctx, tx, k, record)
}

// remove deletes the row of a key, if there is one.
func remove[T any](ctx context.Context, tx *transaction, k *kind[T], key string) error {
	if err := tx.ready(ctx); err != nil {
		return err
	}

	t := tx.own(k.slot).(*table[T])
	t.unset(key)
	t.gone[key] = true

	return nil
}

// own returns the table of a slot in the transaction's layer.
func (tx *transaction) own(slot int) any {
	if tx.over[slot] == nil {
		tx.over[slot] = tables[slot]()
	}

	return tx.over[slot]
}

func duplicate(object, key string) error {
	return fault.New(
		fault.Duplicate, "duplicate", "%s %s, or one with the same unique value, already exists",
		object, key,
	)
}
