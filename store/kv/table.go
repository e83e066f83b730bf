package kv

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/deepcopy"
)

// table describes how one kind of record is stored. A record's storage key is the table's number, 0 and the
// record's key. An entry of an index has the table's number, the index's number and the entry's key. Numbers
// and keys are the format of the database: they never change.
type table[T any] struct {
	number  byte
	object  string // its name in errors
	key     func(*T) key
	version func(*T) *int64 // nil: the last put wins
	indexes []*index[T]
	// clone copies a record to store it; read copies a stored record.
	clone, read func(*T) *T
}

// index finds records by other keys. The values of its entries are the records' storage keys.
type index[T any] struct {
	of     *table[T]
	prefix key
	unique bool
	// columns returns the key by which a record is found, or nil if the index leaves it out. An entry of an
	// index that is not unique ends with the record's own key: that makes the entry unique, and orders equal
	// ones.
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

// at returns the storage key of the record with the key parts.
func (t *table[T]) at(parts ...any) key {
	return appendKey(append(make(key, 0, 64), t.number, 0), parts...)
}

// recordKey returns the storage key of a record.
func (t *table[T]) recordKey(record *T) key { return slices.Insert(t.key(record), 0, t.number, 0) }

// entry returns the key of the index entry for a record with a storage key; nil when the index leaves the
// record out.
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

// load returns the record under a storage key, or nil. Nobody may write through it: it may belong to the
// backend.
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

// save stores a record through which nobody writes any more.
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
