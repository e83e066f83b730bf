package sqlstore

// This file holds transactions: the buffer of what is written, reads that see it, and its sending.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

// transaction is a running Update, or one that a host joined.
type transaction struct {
	reader
	joined  *sql.Tx  // the host's; nil in an Update
	session *session // the connection of an Update, from its first write or lock on
	life    context.Context
	begun   bool
	loan    *loan

	writes []*write
	rows   map[string]*write // the buffered write of each row
	dirty  map[string]bool   // the tables that the buffer changes
	// partial is a table of which the buffer holds a change, but not the whole row, so that even a
	// read by key has to send first.
	partial string
	absent  map[string]bool // rows that were looked for and did not exist
	claimed map[string]bool // idempotency keys that this transaction claimed
	raised  []raised
	ended   bool
	broken  error // the first failure to send: the transaction must not commit
}

var _ store.Tx = (*transaction)(nil)

// write is one buffered row.
type write struct {
	slot, table, object string
	key                 []any
	text                func(*write) (template string, args []any)
	values              []any // nil: deleted
	base                int64 // the version that the stored row must have
	version             int64
	one                 bool        // exactly one row must change
	certain             bool        // it changes exactly one row or fails
	fresh               *into       // where a row that must be new goes; else nil
	also                []insertion // what a new row brings with it
}

// raised is a version that a Put raised in a caller's record.
type raised struct {
	version *int64
	before  int64
}

// newTransaction returns a transaction that has no connection yet, or one in a host's that has begun.
func newTransaction(life context.Context, s *Store, joined *sql.Tx) *transaction {
	tx := &transaction{joined: joined, life: life}

	tx.reader = reader{store: s, on: s.options.Read, tx: tx}
	if joined != nil {
		tx.on = joined
	}

	return tx
}

// SQL returns the SQL transaction that tx runs in; ok is false when tx is none of a SQL store. It looks
// through wrappers that have a method Unwrap() store.Tx.
func SQL(tx store.Tx) (sqlTx *sql.Tx, ok bool) {
	for tx != nil {
		switch t := tx.(type) {
		case *transaction:
			sqlTx, err := t.lend()
			return sqlTx, err == nil
		case interface{ Unwrap() store.Tx }:
			tx = t.Unwrap()
		default:
			return nil, false
		}
	}

	return nil, false
}

// Join returns a transaction inside a host's own, and the function that sends what it buffered. The
// host calls flush before it commits. Nothing is run again: conflicts go to the host.
func (s *Store) Join(sqlTx *sql.Tx) (tx store.Tx, flush func(ctx context.Context) error) {
	t := newTransaction(context.Background(), s, sqlTx)
	return t, t.flush
}

// takeBack gives callers' records the versions they came with, so that a closure that runs again may put
// a record it captured.
func (tx *transaction) takeBack() {
	for i := len(tx.raised) - 1; i >= 0; i-- {
		*tx.raised[i].version = tx.raised[i].before
	}
}

// usable refuses what comes after the end of the context or the transaction, or after a failure to send.
func (tx *transaction) usable(ctx context.Context) error {
	if tx.ended {
		return fault.New(
			fault.State, "transaction_ended", "the transaction is over: its closure has returned",
		)
	}

	if tx.broken != nil {
		return tx.broken
	}

	return ctx.Err()
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

// put buffers a record with a version, which it raises in the caller's record.
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

	k := values[:t.keys]

	slot := t.slot(k)
	if w := tx.rows[slot]; w != nil {
		switch {
		case w.values == nil && base != 0:
			*v = base
			return conflict(t.object, label(k))
		case w.values != nil && w.version != base:
			*v = base
			if base == 0 {
				return duplicate(t.object, label(k))
			}

			return conflict(t.object, label(k))
		case w.values != nil: // written again: one statement is enough
			w.values, w.version = values, *v
			tx.raised = append(tx.raised, raised{v, base})

			return nil
		}
	}

	w := &write{
		slot:    slot,
		table:   t.name,
		object:  t.object,
		key:     k,
		values:  values,
		base:    base,
		version: *v,
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
		w.fresh = t.into
		if t.also != nil {
			w.also = t.also(record)
		}
	}

	tx.buffer(w)
	tx.raised = append(tx.raised, raised{v, base})

	return nil
}

func putAll[T any](ctx context.Context, tx *transaction, t *table[T], records []*T) error {
	for _, record := range records {
		if err := put(ctx, tx, t, record); err != nil {
			return err
		}
	}

	return nil
}

// add buffers a record without a version that must not exist yet; set one that replaces what was there.
func add[T any](ctx context.Context, tx *transaction, t *table[T], record *T) error {
	return keep(ctx, tx, t, record, t.insert, t.into)
}

func set[T any](ctx context.Context, tx *transaction, t *table[T], record *T) error {
	return keep(ctx, tx, t, record, t.upsert, nil)
}

func keep[T any](
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

	k := values[:t.keys]

	slot := t.slot(k)
	if w := tx.rows[slot]; w != nil && w.values != nil {
		if fresh != nil {
			return duplicate(t.object, label(k))
		}

		w.values = values

		return nil
	}

	tx.buffer(&write{
		slot:    slot,
		table:   t.name,
		object:  t.object,
		key:     k,
		values:  values,
		one:     true,
		certain: true,
		fresh:   fresh,
		text:    func(w *write) (string, []any) { return template, w.values },
	})

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
		tx.rows, tx.dirty = make(map[string]*write, 8), make(map[string]bool, 8)
	}

	tx.writes = append(tx.writes, w)

	tx.dirty[w.table] = true
	if w.slot != "" {
		tx.rows[w.slot] = w
	}
}

// flush sends the buffered writes.
func (tx *transaction) flush(ctx context.Context) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}

	if len(tx.writes) == 0 {
		return nil
	}

	return tx.deliver(ctx, false)
}

// statements adds the buffered writes to a batch, and returns the write of which each statement is
// the main one, or nil.
func (tx *transaction) statements(b *Batch) (of []*write) {
	s := tx.store
	for _, w := range tx.writes {
		template, values := w.text(w)
		b.add(s.text(template), s.dialect.args(values))

		of = append(of, w)
		for _, i := range w.also {
			s.insert(b, i)
		}

		of = append(of, make([]*write, len(b.Texts)-len(of))...)
	}

	return of
}

// deliver sends the buffered writes, and commits when it is told to.
func (tx *transaction) deliver(ctx context.Context, commit bool) error {
	b := Batch{Commit: commit}
	of := tx.statements(&b)

	changed, err := tx.send(ctx, b)
	for i, n := range changed {
		if w := of[i]; w != nil && w.one && n != 1 {
			// An update that found no row of its version.
			tx.broken = conflict(w.object, label(w.key))
			return tx.broken
		}
	}

	if err != nil {
		var w *write
		if len(changed) < len(of) {
			w = of[len(changed)]
		}

		tx.broken = tx.refused(ctx, err, w)

		return tx.broken
	}

	clear(tx.rows)
	clear(tx.dirty)
	tx.writes, tx.partial = nil, ""

	return nil
}

// refused explains why a write failed. A row that was looked for in this transaction, was not there
// and is now, was made by somebody else meanwhile: that is a conflict, and running again finds it.
func (tx *transaction) refused(ctx context.Context, err error, w *write) error {
	if w == nil {
		return tx.store.explain(ctx, err, "write")
	}

	err = tx.store.explain(ctx, err, fmt.Sprintf("write %s %s", w.object, label(w.key)))
	if errors.Is(err, fault.Duplicate) && tx.absent[w.slot] {
		return conflict(w.object, label(w.key))
	}

	return err
}

// send runs a batch, which begins the transaction if nothing has yet.
func (tx *transaction) send(ctx context.Context, b Batch) ([]int64, error) {
	if tx.joined == nil {
		if err := tx.connect(ctx); err != nil {
			return nil, err
		}

		b.Begin, tx.begun = !tx.begun, true

		return tx.store.send(ctx, tx.session, b)
	}

	return b.OneByOne("", func(text string, args []any) (int64, error) {
		return Affected(tx.joined.ExecContext(ctx, text, args...))
	})
}

// now runs a statement at once, after what was buffered before it.
func (tx *transaction) now(ctx context.Context, template string, args ...any) (int64, error) {
	if err := tx.flush(ctx); err != nil {
		return 0, err
	}

	changed, err := tx.send(
		ctx,
		Batch{Texts: []string{tx.store.text(template)}, Args: [][]any{tx.store.dialect.args(args)}},
	)
	if err != nil {
		return 0, tx.fail(ctx, err, "write")
	}

	return changed[0], nil
}

// fail remembers that a statement of the transaction failed, so that it cannot be committed by somebody who
// swallows the error.
func (tx *transaction) fail(ctx context.Context, err error, doing string) error {
	tx.broken = tx.store.explain(ctx, err, doing)
	return tx.broken
}
