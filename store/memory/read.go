package memory

// This file reads rows: those of a transaction's own layer above the committed ones.

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/fault"
)

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

// get returns the row of a key, or fault.NotFound when there is none or may returns false.
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

// window selects and orders the rows of a bucket that a scan returns.
type window[T any] struct {
	downward bool          // highest rank first; otherwise lowest first
	below    string        // downward: only ranks below it; "" for all
	above    string        // downward: only ranks from it on; "" for all
	to       string        // upward: only ranks up to it; "" for all
	match    func(*T) bool // nil for all
	limit    int           // in rows; 0 for all
}

// page returns the window of a list: newest first, after an id.
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

// pick appends up to limit entries of a list, without those that the layer above replaced or deleted.
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
