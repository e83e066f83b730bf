package sqlstore

// This file holds transactions: their buffer, how it is sent, and how failures are explained.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

// transaction is a running Update, or a transaction that a host joined.
type transaction struct {
	reader
	joined   *sql.Tx  // the host's; nil in an Update
	session  *session // the connection of an Update, from its first write or lock on
	life     context.Context
	begun    bool
	borrowed *borrowedTx
	// hostFailed is the first error of a statement that the host ran on the borrowed *sql.Tx.
	hostFailed atomic.Pointer[error]

	writes []*write
	rows   map[string]*write // the buffered write of each row
	dirty  []string          // the tables that the buffer changes
	// partial is a table with a buffered change that is not a whole row: even a read by key has to flush
	// first.
	partial string
	absent  map[string]bool // slots of rows that were read and did not exist
	claimed map[string]bool // idempotency keys that this transaction claimed
	proof   proof           // the row whose presence proves that the transaction committed
	// premises are validated by the commit. The function of each forgets the rows that it is about.
	premises map[premise]func()
	raised   []raised
	ended    bool
	broken   error // the first failure to send: the transaction must not commit
}

var (
	_ store.Tx      = (*transaction)(nil)
	_ store.Breaker = (*transaction)(nil)
	_ store.Flusher = (*transaction)(nil)
)

// Break implements store.Breaker.
func (tx *transaction) Break(err error) {
	if tx.broken == nil {
		tx.broken = err
	}
}

// newTransaction returns a transaction without a connection yet, or a transaction inside the host's joined.
func newTransaction(life context.Context, s *sqlStore, joined *sql.Tx) *transaction {
	tx := &transaction{joined: joined, life: life}

	tx.reader = reader{store: s, on: s.read, tx: tx}
	if joined != nil {
		tx.on = &sqlx.Tx{Tx: joined, Mapper: mapper}
	}

	return tx
}

// SQL returns the SQL transaction that tx runs in. It unwraps wrappers that have a method Unwrap() store.Tx.
//
// Errors: fault.Unsupported (transaction_not_sql) when tx is not of a SQL store; fault.Unavailable and
// fault.Conflict when the database does not begin the transaction, or has ended it.
func SQL(tx store.Tx) (*sql.Tx, error) {
	for tx != nil {
		switch t := tx.(type) {
		case *transaction:
			return t.borrow()
		case interface{ Unwrap() store.Tx }:
			tx = t.Unwrap()
		default:
			tx = nil
		}
	}

	return nil, fault.New(fault.Unsupported, "transaction_not_sql", "the transaction is not of a SQL store")
}

// restoreVersions resets the versions in callers' records, so that a retried closure may put a record
// that it captured.
func (tx *transaction) restoreVersions() {
	for i := len(tx.raised) - 1; i >= 0; i-- {
		*tx.raised[i].version = tx.raised[i].before
	}
}

// usable returns an error after the end of the context or the transaction, or after a failed send.
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

// Flush implements store.Flusher.
func (tx *transaction) Flush(ctx context.Context) error { return tx.flush(ctx) }

// flush sends the buffered writes.
func (tx *transaction) flush(ctx context.Context) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}

	if len(tx.writes) == 0 {
		return nil
	}

	return tx.sendBuffered(ctx, false)
}

// statements adds the buffered writes to a batch. It returns, for each statement, the write whose main
// statement it is, or nil.
func (tx *transaction) statements(b *Batch) (of []*write) {
	s := tx.store

	statements := 2 * len(tx.writes) // with some for dependent rows
	b.grow(statements)
	of = make([]*write, 0, statements)

	for _, w := range tx.writes {
		template, values := w.text(w)

		from := len(b.Texts)
		b.add(s.text(template), s.dialect.args(values))
		first := s.bound(b, from, w.wait)

		of = append(of, make([]*write, first)...)

		of = append(of, w)
		for _, i := range w.also {
			s.insert(b, i)
		}

		of = append(of, make([]*write, len(b.Texts)-len(of))...)
	}

	return of
}

// sendBuffered sends the buffered writes, followed by COMMIT if commit is set.
func (tx *transaction) sendBuffered(ctx context.Context, commit bool) error {
	b := Batch{Commit: commit}
	of := tx.statements(&b)

	if commit {
		tx.store.validate(&b, tx.premises)

		of = append(of, make([]*write, len(b.Texts)-len(of))...)
	}

	changed, err := tx.send(ctx, b)
	for i, n := range changed {
		if w := of[i]; w != nil && w.one && n != 1 {
			// The update found no row with its version.
			tx.broken = conflict(w.object, label(w.key))
			return tx.broken
		}
	}

	if err != nil {
		var w *write
		if len(changed) < len(of) {
			w = of[len(changed)]
		}

		tx.broken = tx.writeError(ctx, err, w)

		return tx.broken
	}

	for _, w := range tx.writes {
		if w.wait > 0 {
			tx.hasClaimed(w.slot)
		}
	}

	clear(tx.rows)
	tx.writes, tx.dirty, tx.partial = nil, nil, ""

	return nil
}

// writeError explains why a write failed. If this transaction had read the row as absent, a duplicate was
// inserted concurrently: that is fault.Conflict, and a retry finds the row.
func (tx *transaction) writeError(ctx context.Context, err error, w *write) error {
	if w == nil {
		return tx.explain(ctx, err, "write")
	}

	err = tx.explain(ctx, err, fmt.Sprintf("write %s %s", w.object, label(w.key)))
	if w.wait > 0 {
		if errors.Is(err, fault.Duplicate) {
			return fault.Wrap(
				err,
				fault.Duplicate,
				"claim_taken",
				"another request holds the idempotency key",
			)
		}

		return claimError(err)
	}

	if errors.Is(err, fault.Duplicate) && tx.absent[w.slot] {
		return conflict(w.object, label(w.key))
	}

	return err
}

// send runs a batch, which begins the transaction if it has not begun.
func (tx *transaction) send(ctx context.Context, b Batch) ([]int64, error) {
	if tx.joined == nil {
		if err := tx.connect(ctx); err != nil {
			return nil, err
		}

		b.Begin, tx.begun = !tx.begun, true

		return tx.store.send(ctx, tx.session, b)
	}

	if err := tx.store.stillRuns(ctx, tx.joined); err != nil {
		return nil, err
	}

	if d := tx.store.dialect; d.SendJoined != nil {
		return d.SendJoined(ctx, tx.joined, b)
	}

	return b.OneByOne("", func(text string, args []any) (int64, error) {
		return affected(tx.joined.ExecContext(ctx, text, args...))
	})
}

// execNow flushes the buffer and runs a statement at once. It returns the number of rows changed.
func (tx *transaction) execNow(ctx context.Context, template string, args ...any) (int64, error) {
	if err := tx.flush(ctx); err != nil {
		return 0, err
	}

	batch := Batch{Texts: []string{tx.store.text(template)}, Args: [][]any{tx.store.dialect.args(args)}}

	changed, err := tx.send(ctx, batch)
	if err != nil {
		return 0, tx.breakWith(ctx, err, "write")
	}

	return changed[0], nil
}

// explainClosure returns the error of a closure that has failed. An error without a kind is explained by an
// earlier failure of the store, or by the database's answer to a statement of the host.
func (tx *transaction) explainClosure(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}

	if tx.broken != nil {
		return fmt.Errorf("%w, after: %w", err, tx.broken)
	}

	tx.broken = known(tx.explain(ctx, err, "run the transaction's closure"), err)

	return tx.broken
}

// known returns the explanation of an error of the host's statement, or the error itself if it has no kind
// for it. A duplicate or a division by zero has a meaning only in the store's own statements.
func known(explained, err error) error {
	if errors.Is(explained, fault.Unavailable) ||
		errors.Is(explained, fault.Conflict) && fault.Code(explained) != readOutdated {
		return explained
	}

	return err
}

// explain returns why a statement of the transaction failed. Sometimes the cause is that an earlier statement
// of the host failed, and the host did not return its error. Then the result is the explanation of that
// error.
func (tx *transaction) explain(ctx context.Context, err error, doing string) error {
	err = tx.store.explain(ctx, err, doing)

	host := tx.hostFailed.Load()
	if host == nil || fault.Code(err) != transactionAborted {
		return err
	}

	return fmt.Errorf(
		"a statement that the host ran in the transaction failed, and its error was not returned: %w",
		known(tx.store.explain(ctx, *host, "run it"), *host),
	)
}

// breakWith records that a statement failed, so that the transaction cannot commit even when the caller
// ignores the error.
func (tx *transaction) breakWith(ctx context.Context, err error, doing string) error {
	tx.broken = tx.explain(ctx, err, doing)
	return tx.broken
}
