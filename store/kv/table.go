package kv

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/deepcopy"
)

// table describes how one kind of record is stored. A record is under its number, 0 and its key; an entry of
// an index under the number of the table, that of the index and its own key. Numbers and keys are the
// format of the database: they never change.
type table[T any] struct {
	number  byte
	object  string // its name in errors
	key     func(*T) key
	version func(*T) *int64 // nil: the last put wins
	indexes []*index[T]
	// clone copies a record for storing it, read one that is stored.
	clone, read func(*T) *T
}

// index finds records by other keys than their own. Its entries have the records' storage keys as values.
type index[T any] struct {
	of     *table[T]
	prefix key
	unique bool
	// columns returns the key that a record is found by, or nil when the index leaves it out. The entry
	// of an index that is not unique ends with the record's own key, which makes it one and orders equals.
	columns func(*T) key
}

func newTable[T any](number byte, object string, key func(*T) key, version func(*T) *int64) *table[T] {
	return &table[T]{
		number:  number,
		object:  object,
		key:     key,
		version: version,
		clone:   deepcopy.Of[T](),
		read:    deepcopy.OfStored[T](),
	}
}

// ordered adds an index.
func (t *table[T]) ordered(number byte, columns func(*T) key) *index[T] {
	ix := &index[T]{of: t, prefix: key{t.number, number}, columns: columns}
	t.indexes = append(t.indexes, ix)

	return ix
}

// unique adds an index in which no two records have the same columns.
func (t *table[T]) unique(number byte, columns func(*T) key) *index[T] {
	ix := t.ordered(number, columns)
	ix.unique = true

	return ix
}

// primary returns an index that orders records by their own keys: the records themselves.
func (t *table[T]) primary() *index[T] { return &index[T]{of: t, prefix: key{t.number, 0}} }

// at returns the storage key of the record whose key has these parts.
func (t *table[T]) at(parts ...any) key {
	return appendKey(append(make(key, 0, 64), t.number, 0), parts...)
}

// recordKey returns the storage key of a record.
func (t *table[T]) recordKey(record *T) key { return slices.Insert(t.key(record), 0, t.number, 0) }

// entry returns the key of the entry of a record with a storage key; nil when the index leaves the record out.
func (ix *index[T]) entry(at key, record *T) key {
	if record == nil {
		return nil
	}

	columns := ix.columns(record)
	if columns == nil {
		return nil
	}

	if ix.unique {
		return slices.Insert(columns, 0, ix.prefix...)
	}

	own := at[len(ix.prefix):] // both keys begin with two bytes

	return slices.Insert(append(columns, own...), 0, ix.prefix...)
}

// load returns the record under a storage key, or nil. Nobody may write through it: it may be the backend's.
func (t *table[T]) load(b Reader, at key) (*T, error) {
	if records, ok := b.(RecordReader); ok {
		record, _ := records.Record(at).(*T)
		return record, nil
	}

	value, err := b.Get(at)
	if err != nil || value == nil {
		return nil, err
	}

	return t.decode(value)
}

// decode returns the record that a value encodes.
func (t *table[T]) decode(value []byte) (*T, error) {
	record := new(T)
	if err := json.Unmarshal(value, record); err != nil {
		return nil, fault.Wrap(
			err, fault.Unavailable, "record_damaged", "a stored %s cannot be read", t.object,
		)
	}

	return record, nil
}

// save stores a record that nobody writes through any more.
func (t *table[T]) save(b Writer, at key, record *T) error {
	if records, ok := b.(RecordWriter); ok {
		records.PutRecord(at, record)
		return nil
	}

	value, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode %s: %w", t.object, err)
	}

	return b.Put(at, value)
}
