package kv

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// reader reads committed records, or the records as a transaction sees them.
type reader struct {
	view func(ctx context.Context, f func(Reader) error) error
}

// get returns the record of an id, or fault.NotFound when there is none or may returns false.
func get[T any](ctx context.Context, r *reader, t *table[T], id string, may func(*T) bool) (T, error) {
	found, err := peek(ctx, r, t, id, may)
	if err != nil {
		var none T
		return none, err
	}

	return *t.read(found), nil
}

// peek is get without a copy: nobody may write through the returned pointer.
func peek[T any](ctx context.Context, r *reader, t *table[T], id string, may func(*T) bool) (*T, error) {
	found, err := fetch(ctx, r, t, t.at(id))
	if err == nil && (found == nil || may != nil && !may(found)) {
		err = fault.Missing(t.object, id)
	}

	return found, err
}

// try returns the record under a storage key; ok is false when there is none.
func try[T any](ctx context.Context, r *reader, t *table[T], at key) (record T, ok bool, err error) {
	found, err := fetch(ctx, r, t, at)
	if err != nil || found == nil {
		return record, false, err
	}

	return *t.read(found), true, nil
}

// fetch returns the record under a storage key, or nil. Nobody may write through it: it may be the backend's,
// which never changes a record that it holds.
func fetch[T any](ctx context.Context, r *reader, t *table[T], at key) (found *T, err error) {
	err = r.view(ctx, func(b Reader) (err error) {
		found, err = t.load(b, at)
		return err
	})

	return found, err
}

// several returns the existing records under some storage keys, each once, lowest key first.
func several[T any](ctx context.Context, r *reader, t *table[T], keys []key) (out []T, err error) {
	found := map[string]*T{}

	err = r.view(ctx, func(b Reader) error {
		for _, at := range keys {
			record, err := t.load(b, at)
			if err != nil {
				return err
			}

			if record != nil {
				found[string(at)] = record
			}
		}

		for _, at := range slices.Sorted(maps.Keys(found)) {
			out = append(out, *t.read(found[at]))
		}

		return nil
	})

	return out, err
}

// byID returns the storage keys for ids.
func (t *table[T]) byID(ids []string) []key {
	keys := make([]key, len(ids))
	for i, id := range ids {
		keys[i] = t.at(id)
	}

	return keys
}

// placesOf returns the storage keys for values of a network, such as hashes.
func placesOf[T any](t *table[T], network string, values []string) []key {
	keys := make([]key, len(values))
	for i, v := range values {
		keys[i] = t.at(network, v)
	}

	return keys
}

// each returns the prefixes for values of a network, such as hashes or addresses.
func each[S ~string](network string, values []S) []key {
	keys := make([]key, len(values))
	for i, v := range values {
		keys[i] = keyOf(network, string(v))
	}

	return keys
}

// window selects and orders the records under a prefix of an index.
type window[T any] struct {
	descending bool
	// from and to bound the rest of the key after the prefix: at or above from, below to. nil: no bound.
	from, to key
	match    func(*T) bool // nil: all
	limit    int           // 0 or less: no limit
}

// page returns the window of a list: newest first, after an id.
func page[T any](after string, limit int, match func(*T) bool) window[T] {
	w := window[T]{descending: true, limit: limit, match: match}
	if after != "" {
		w.to = keyOf(after)
	}

	return w
}

// made limits a page to records that were created at or after one time and before another; a zero time is no
// bound. It bounds the ids, which are in the order of creation.
func (w window[T]) made(bound func(time.Time) string, after, before time.Time) window[T] {
	if !after.IsZero() {
		w.from = keyOf(bound(after))
	}

	if !before.IsZero() {
		if to := keyOf(bound(before)); w.to == nil || bytes.Compare(to, w.to) < 0 {
			w.to = to
		}
	}

	return w
}

// list returns the records under a prefix of an index.
func list[T any](ctx context.Context, r *reader, ix *index[T], prefix key, w window[T]) (out []T, err error) {
	return among(ctx, r, ix, []key{prefix}, w)
}

// among returns the records under several prefixes of an index. Duplicate prefixes count once; they are read
// in order.
func among[T any](
	ctx context.Context,
	r *reader,
	ix *index[T],
	prefixes []key,
	w window[T],
) (out []T, err error) {
	if len(prefixes) > 1 {
		prefixes = slices.CompactFunc(slices.SortedFunc(slices.Values(prefixes), bytes.Compare), bytes.Equal)
	}

	err = r.view(ctx, func(b Reader) error {
		out = nil

		for _, prefix := range prefixes {
			if err := ix.scan(
				b,
				prefix,
				w,
				func(record *T) { out = append(out, *ix.of.read(record)) },
			); err != nil {
				return err
			}
		}

		return nil
	})

	return out, err
}

// count returns how many entries of an index a window selects.
func count[T any](ctx context.Context, r *reader, ix *index[T], prefix key, w window[T]) (n int, err error) {
	err = r.view(ctx, func(b Reader) error {
		n = 0
		from, to := ix.bounds(prefix, w)

		return b.Scan(from, to, false, func(_, _ []byte) bool { n++; return true })
	})

	return n, err
}

// bounds returns the storage keys that bound the entries of a window.
func (ix *index[T]) bounds(prefix key, w window[T]) (from, to key) {
	all := len(ix.prefix) + len(prefix)
	from = slices.Concat(ix.prefix, prefix, w.from)

	if w.to != nil {
		return from, slices.Concat(from[:all:all], w.to)
	}

	return from, after(from[:all])
}

// scan calls found with the records of a window. They belong to the backend: found copies the ones it keeps.
func (ix *index[T]) scan(b Reader, prefix key, w window[T], found func(*T)) error {
	var (
		failed   error
		taken    int
		from, to = ix.bounds(prefix, w)
	)

	err := b.Scan(from, to, w.descending, func(at, value []byte) bool {
		if ix.columns != nil {
			at = value
		}

		record, err := ix.of.load(b, at)
		if err == nil && record == nil {
			err = fault.New(
				fault.Unavailable, "index_damaged", "an index names a %s that does not exist", ix.of.object,
			)
		}

		if err != nil {
			failed = err
			return false
		}

		if w.match == nil || w.match(record) {
			found(record)

			taken++
		}

		return w.limit <= 0 || taken < w.limit
	})

	return cmp.Or(failed, err)
}
