package memory

// This file holds tables: rows by key, with ordered and unique indexes.

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/internal/deepcopy"
)

// layer holds one table per slot: all of them in the committed layer, those written to in a transaction's.
type layer []any

// tables holds the constructor of each slot's table; newKind appends to it.
var tables []func() any

func newLayer() layer {
	l := make(layer, len(tables))
	for i, make := range tables {
		l[i] = make()
	}

	return l
}

// kind describes the rows of one table.
type kind[T any] struct {
	object  string // its name in errors
	slot    int
	key     func(*T) string
	version func(*T) *int64 // nil: rows of this kind have no version
	indexes []*index[T]
	clone   func(*T) *T
}

// index orders the rows of each bucket by rank. In a unique index a bucket has one row.
type index[T any] struct {
	of     *kind[T]
	slot   int
	unique bool
	// entryOf returns the bucket and rank of a row; ok is false for rows that are not in the index.
	entryOf func(*T) (bucket, rank string, ok bool)
}

func newKind[T any](object string, key func(*T) string, version func(*T) *int64) *kind[T] {
	k := &kind[T]{object: object, slot: len(tables), key: key, version: version, clone: deepcopy.Of[T]()}
	tables = append(tables, func() any {
		return &table[T]{
			kind:    k,
			rows:    map[string]*T{},
			gone:    map[string]bool{},
			buckets: make([]map[string][]entry[T], len(k.indexes)),
		}
	})

	return k
}

// ordered adds an index.
func (k *kind[T]) ordered(entryOf func(*T) (bucket, rank string, ok bool)) *index[T] {
	ix := &index[T]{of: k, slot: len(k.indexes), entryOf: entryOf}
	k.indexes = append(k.indexes, ix)

	return ix
}

// only adds a unique index.
func (k *kind[T]) only(value func(*T) (bucket string, ok bool)) *index[T] {
	ix := k.ordered(func(row *T) (string, string, bool) { b, ok := value(row); return b, "", ok })
	ix.unique = true

	return ix
}

type entry[T any] struct {
	rank string
	row  *T
}

// table is the rows of one kind in one layer. Rows are never changed once they are in it.
type table[T any] struct {
	kind    *kind[T]
	rows    map[string]*T
	gone    map[string]bool // keys deleted in this layer
	buckets []map[string][]entry[T]
}

func (t *table[T]) set(key string, row *T) {
	t.unset(key)
	delete(t.gone, key)

	t.rows[key] = row
	for i, ix := range t.kind.indexes {
		bucket, rank, ok := ix.entryOf(row)
		if !ok {
			continue
		}

		if t.buckets[i] == nil {
			t.buckets[i] = map[string][]entry[T]{}
		}

		list := t.buckets[i][bucket]

		at := len(list)
		if at > 0 && rank < list[at-1].rank {
			at, _ = find(list, rank)
		}

		t.buckets[i][bucket] = slices.Insert(list, at, entry[T]{rank, row})
	}
}

func (t *table[T]) unset(key string) {
	row := t.rows[key]
	if row == nil {
		return
	}

	delete(t.rows, key)

	for i, ix := range t.kind.indexes {
		bucket, rank, ok := ix.entryOf(row)
		if !ok {
			continue
		}

		list := t.buckets[i][bucket]

		at, _ := find(list, rank)
		for list[at].row != row {
			at++
		}

		if list = slices.Delete(list, at, at+1); len(list) == 0 {
			delete(t.buckets[i], bucket)
		} else {
			t.buckets[i][bucket] = list
		}
	}
}

func find[T any](list []entry[T], rank string) (int, bool) {
	return slices.BinarySearchFunc(
		list, rank, func(e entry[T], rank string) int { return strings.Compare(e.rank, rank) },
	)
}

type cloner interface{ clone() any }

// clone copies a table; the rows, which never change, are shared.
func (t *table[T]) clone() any {
	out := &table[T]{
		kind:    t.kind,
		rows:    maps.Clone(t.rows),
		gone:    maps.Clone(t.gone),
		buckets: make([]map[string][]entry[T], len(t.buckets)),
	}
	for i, buckets := range t.buckets {
		if buckets == nil {
			continue
		}

		out.buckets[i] = make(map[string][]entry[T], len(buckets))
		for name, list := range buckets {
			out.buckets[i][name] = slices.Clone(list)
		}
	}

	return out
}

type merger interface{ mergeInto(base any) }

func (t *table[T]) mergeInto(base any) {
	b := base.(*table[T])
	for key := range t.gone {
		b.unset(key)
	}
	// Old rows are removed before new ones are added: a unique value may move from one row to another.
	for key := range t.rows {
		b.unset(key)
	}

	for key, row := range t.rows {
		b.set(key, row)
	}
}

// in returns the table of a kind in a layer; nil when the layer has none.
func in[T any](l layer, k *kind[T]) *table[T] {
	if l == nil || l[k.slot] == nil {
		return nil
	}

	return l[k.slot].(*table[T])
}
