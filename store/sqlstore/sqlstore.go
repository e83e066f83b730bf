// Package sqlstore is a whole store over a SQL database. A Dialect holds the differences between databases;
// store/sqlite, store/postgres and store/mysql are three of them.
//
// A record is a row: a struct whose tags name its columns, read by sqlx and written by the same tags, so that
// no field can be stored and not read. Fields used in conditions have columns of their own; nested values are
// JSON. The schema is one text, rendered for each dialect. A transaction buffers its writes and sends them
// together before it commits.
//
// The author of a dialect runs conformance.TestStore on it.
//
// It is one package because a transaction spans all records: each has a file for its rows and one for its
// queries.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

const (
	// maxTries bounds how often Update runs a closure, or a read outside of one, that ends in a conflict.
	maxTries = 10
	// firstPause and longestPause bound the wait before the next try; half of it is random.
	firstPause, longestPause = time.Millisecond, 20 * time.Millisecond
	// commitTimeout bounds a commit, which ignores the caller's context: the outcome of a cancelled
	// commit is unknown.
	commitTimeout = 30 * time.Second
)

// Options configure a store.
type Options struct {
	// Dialect is the dialect of the database.
	Dialect Dialect
	// Write is the pool for transactions, Read the pool for other reads. Read defaults to Write.
	Write, Read *sql.DB
	// Single is set if Write is the store's own pool of one connection, kept open with its prepared
	// statements.
	Single bool
	// Close releases the resources that the store opened; may be nil.
	Close func() error
	// Probe checks that the database is still there; may be nil.
	Probe func() error
	// Wait waits before Update retries a closure, and returns early with the context's error. Defaults to
	// a timer.
	Wait func(ctx context.Context, d time.Duration) error
}

// Store is the result of New. It prints without secrets.
type Store interface {
	store.Store
	store.Prober
	store.AttentionReader
	webhook.BacklogReader
}

// sqlStore is a Store.
type sqlStore struct {
	reader
	options Options
	dialect *Dialect
	read    *sqlx.DB
	texts   sync.Map // template → statement
	keyed   sync.Map // text of a read by key → *sqlx.Stmt, if the pool is the store's own
	fits    atomic.Bool
	// writer holds the only connection for writing while it is idle, or nil before it is opened. The channel
	// itself is nil if connections come from the host's pool.
	writer chan *session
	group  group
	homes  *homes // nil if tables are not spread
	// keptAccounts and keptEndpoints hold rows that transactions are given without reading them again; see
	// validated.
	keptAccounts  kept[account.Account]
	keptEndpoints kept[[]webhook.Endpoint]

	closing  sync.Once
	isClosed atomic.Bool
	closed   error
}

var _ Store = (*sqlStore)(nil)

// New returns a store. It does not touch the database: the first use answers fault.Unavailable if the schema
// is not the one that this code was written for. Errors: fault.Invalid for an incomplete dialect.
func New(o Options) (Store, error) {
	if err := o.Dialect.check(); err != nil {
		return nil, err
	}

	return newStore(o), nil
}

// Join returns a transaction inside the host's, and the function that sends its buffered writes. The
// host calls flush before it commits. Nothing is retried: the host gets fault.Conflict.
func Join(d Dialect, sqlTx *sql.Tx) (tx store.Tx, flush func(ctx context.Context) error, err error) {
	if err := d.check(); err != nil {
		return nil, nil, err
	}

	t := newTransaction(context.Background(), newStore(Options{Dialect: d}), sqlTx)

	return t, t.flush, nil
}

func newStore(o Options) *sqlStore {
	if o.Read == nil {
		o.Read = o.Write
	}

	if o.Wait == nil {
		o.Wait = wait
	}

	s := &sqlStore{options: o}
	s.dialect = &s.options.Dialect

	if o.Read != nil {
		s.read = &sqlx.DB{DB: o.Read, Mapper: mapper}
	}

	s.reader = reader{store: s, on: s.read}

	if s.dialect.Types.Distributed {
		s.homes = newHomes()
	}

	s.group.store = s
	if o.Single {
		s.writer = make(chan *session, 1)
		s.writer <- nil
	}

	return s
}

// wait waits for d or until the context ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close releases the resources that the store opened itself, when the last transaction has ended. Later calls
// fail with fault.Unavailable.
func (s *sqlStore) Close() error {
	s.closing.Do(func() {
		s.isClosed.Store(true)

		if s.writer != nil {
			if c := <-s.writer; c != nil {
				c.close()
			}

			close(s.writer)
		}

		if s.options.Close != nil {
			s.closed = s.options.Close()
		}
	})

	return s.closed
}

type updating struct{ store *sqlStore }

// Update runs f in one transaction; see package store. An Update inside the closure of another one is
// refused with fault.State, because it could wait for itself.
func (s *sqlStore) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	if ctx.Value(updating{s}) != nil {
		return fault.New(
			fault.State, "update_nested",
			"an update was started inside an update: use the transaction that the closure was given",
		)
	}

	return s.retry(ctx, func(retry bool) error { return s.try(ctx, f, retry) })
}

// retry calls do until it ends without a conflict, up to maxTries times.
func (s *sqlStore) retry(ctx context.Context, do func(retry bool) error) error {
	pause := firstPause

	for try := 1; ; try++ {
		err := do(try > 1)
		if !errors.Is(err, fault.Conflict) {
			return err
		}

		if try == maxTries {
			return fmt.Errorf("gave up after %d tries: %w", try, err)
		}

		if waitErr := s.options.Wait(ctx, pause/2+rand.N(pause/2)); waitErr != nil {
			return fmt.Errorf("%w, while waiting to run again after: %w", waitErr, err)
		}

		pause = min(2*pause, longestPause)
	}
}

// try runs f once. retry is set after a conflict: on a database with a single writer the transaction then
// begins before f runs, which rules out another conflict.
func (s *sqlStore) try(
	ctx context.Context,
	f func(ctx context.Context, tx store.Tx) error,
	retry bool,
) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	// The caller's context cancels the statements, and the transaction is then rolled back here. It must
	// not cancel a COMMIT, whose outcome would be unknown.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()

	tx := newTransaction(life, s, nil)
	committed := false

	defer func() { // also while a panic of f passes through
		tx.ended = true
		if !committed {
			tx.rollBack()
			tx.restoreVersions()
			tx.forgetPremises()
		}

		if tx.session != nil {
			tx.session.retire(tx.broken)
			s.releaseSession(tx.session)
		}
	}()

	if retry && !s.dialect.Concurrent {
		if err := tx.begin(ctx); err != nil {
			return err
		}
	}

	if err := f(context.WithValue(ctx, updating{s}, true), tx); err != nil {
		return tx.explainClosure(ctx, err)
	}

	if err := tx.commit(ctx, life, end); err != nil && !s.hasCommitted(life, tx, err) {
		return err
	}

	committed = true

	return nil
}

// text returns the statement of a fixed template, cached.
func (s *sqlStore) text(template string) string {
	if t, ok := s.texts.Load(template); ok {
		return t.(string)
	}

	t := s.dialect.text(template)
	s.texts.Store(template, t)

	return t
}

// explain classifies a driver's error and wraps it with what was being done.
func (s *sqlStore) explain(ctx context.Context, err error, doing string) error {
	if err == nil {
		return nil
	}

	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w: %w", doing, ctx.Err(), err)
	}

	classified := errors.Is(err, fault.Unavailable) || errors.Is(err, fault.Conflict) ||
		errors.Is(err, fault.Duplicate)
	if classified {
		return err
	}

	return Explain(s.dialect.Explain, err, doing)
}

// Probe checks the schema's version again, and calls Options.Probe. While Probe fails, so does every use of
// the store.
func (s *sqlStore) Probe(ctx context.Context) error {
	s.fits.Store(false)

	return s.ready(ctx)
}

// ready checks that the store is open. Until it succeeds once, it also checks that the database's schema has
// the expected version.
func (s *sqlStore) ready(ctx context.Context) error {
	if s.isClosed.Load() {
		return fault.New(fault.Unavailable, "store_closed", "the store is closed")
	}

	if s.fits.Load() {
		return ctx.Err()
	}

	if s.options.Probe != nil {
		if err := s.options.Probe(); err != nil {
			return err
		}
	}

	have, err := s.dialect.schemaVersion(ctx, s.options.Read)
	if err != nil {
		return s.explain(ctx, err, "read the version of the database's schema")
	}

	if err := s.dialect.fits(have); err != nil {
		return err
	}

	s.fits.Store(true)

	return nil
}
