package memory

// This file holds tables: rows by key with ordered indexes, and the reads and writes that see a
// transaction's own layer above the committed one.

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/deepcopy"
)

// layer holds one table per slot: all of them in the committed layer, those written to in a transaction's.
type layer []any

// tables makes the table of each slot; kinds add themselves to it.
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
	object  string // the word for it in errors
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
	place  func(*T) (bucket, rank string, ok bool)
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

// ordered adds an index. place answers ok false for rows that are not in it.
func (k *kind[T]) ordered(place func(*T) (bucket, rank string, ok bool)) *index[T] {
	ix := &index[T]{of: k, slot: len(k.indexes), place: place}
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
		bucket, rank, ok := ix.place(row)
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
		bucket, rank, ok := ix.place(row)
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

type merger interface{ mergeInto(base any) }

func (t *table[T]) mergeInto(base any) {
	b := base.(*table[T])
	for key := range t.gone {
		b.unset(key)
	}
	// First all old rows go, then all new ones come: a unique value may pass from one row to another.
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

// lookup returns the stored row of a key, or nil. It must be cloned before it leaves the package.
func lookup[T any](ctx context.Context, r *reader, k *kind[T], key string) (*T, error) {
	if err := r.ready(ctx); err != nil {
		return nil, err
	}

	if over := in(r.over, k); over != nil {
		if row := over.rows[key]; row != nil {
			return row, nil
		}

		if over.gone[key] {
			return nil, nil
		}
	}

	r.store.mu.RLock()
	defer r.store.mu.RUnlock()

	return in(r.base, k).rows[key], nil
}

// get returns the row of a key, or fault.NotFound when there is none or may does not agree.
func get[T any](ctx context.Context, r *reader, k *kind[T], key string, may func(*T) bool) (T, error) {
	row, err := lookup(ctx, r, k, key)
	if err == nil && (row == nil || may != nil && !may(row)) {
		err = fault.Missing(k.object, key)
	}

	if err != nil {
		var none T
		return none, err
	}

	return *k.clone(row), nil
}

// try returns the row of a key; ok is false when there is none.
func try[T any](ctx context.Context, r *reader, k *kind[T], key string) (row T, ok bool, err error) {
	p, err := lookup(ctx, r, k, key)
	if err != nil || p == nil {
		return row, false, err
	}

	return *k.clone(p), true, nil
}

// several returns the rows of those keys that exist, each once, lowest key first.
func several[T any](ctx context.Context, r *reader, k *kind[T], keys []string) ([]T, error) {
	out := make([]T, 0, len(keys))
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		row, ok, err := try(ctx, r, k, key)
		if err != nil {
			return nil, err
		}

		if ok {
			out = append(out, row)
		}
	}

	return out, nil
}

// window says which rows of a bucket a scan returns, and in which order.
type window[T any] struct {
	downward bool          // highest rank first; otherwise lowest first
	below    string        // downward: only ranks below it; "" for all
	above    string        // downward: only ranks from it on; "" for all
	to       string        // upward: only ranks up to it; "" for all
	match    func(*T) bool // nil for all
	limit    int           // 0 for all
}

// page is the window of a list: newest first, after an id.
func page[T any](after string, limit int, match func(*T) bool) window[T] {
	return window[T]{downward: true, below: after, limit: limit, match: match}
}

// scanRows returns the rows of one bucket of an index.
func scanRows[T any](ctx context.Context, r *reader, ix *index[T], bucket string, w window[T]) ([]T, error) {
	rows, err := scanStored(ctx, r, ix, bucket, w)
	if err != nil {
		return nil, err
	}

	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = *ix.of.clone(row)
	}

	return out, nil
}

func scanStored[T any](
	ctx context.Context,
	r *reader,
	ix *index[T],
	bucket string,
	w window[T],
) ([]*T, error) {
	if err := r.ready(ctx); err != nil {
		return nil, err
	}

	over := in(r.over, ix.of)

	var found []entry[T]
	if over != nil {
		found = w.pick(found, over.buckets[ix.slot][bucket], nil)
	}

	own := len(found)

	r.store.mu.RLock()
	found = w.pick(found, in(r.base, ix.of).buckets[ix.slot][bucket], over)
	r.store.mu.RUnlock()

	if own > 0 && own < len(found) {
		slices.SortFunc(found, func(a, b entry[T]) int {
			if w.downward {
				a, b = b, a
			}

			return strings.Compare(a.rank, b.rank)
		})
	}

	if w.limit > 0 && len(found) > w.limit {
		found = found[:w.limit]
	}

	rows := make([]*T, len(found))
	for i, e := range found {
		rows[i] = e.row
	}

	return rows, nil
}

// pick adds up to limit entries of a list, those left out whose rows the layer above replaced or deleted.
func (w window[T]) pick(found, list []entry[T], above *table[T]) []entry[T] {
	taken := 0
	take := func(e entry[T]) bool {
		if above != nil {
			key := above.kind.key(e.row)
			if above.gone[key] || above.rows[key] != nil {
				return true
			}
		}

		if w.match == nil || w.match(e.row) {
			found = append(found, e)
			taken++
		}

		return w.limit <= 0 || taken < w.limit
	}

	if w.downward {
		end := len(list)
		if w.below != "" {
			end, _ = find(list, w.below)
		}

		for i := end - 1; i >= 0 && list[i].rank >= w.above && take(list[i]); i-- {
		}

		return found
	}

	for _, e := range list {
		if w.to != "" && e.rank > w.to || !take(e) {
			break
		}
	}

	return found
}

// put stores a record. With a version it compares it, and raises it in the caller's record.
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

		if bucket, _, ok := ix.place(row); ok {
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

// add is put for records that must not exist yet and have no version.
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

// own returns the transaction's own table of a slot.
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
