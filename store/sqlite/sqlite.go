// Package sqlite is a store in one SQLite file: for a service on one machine, without a database server.
//
// Open keeps one connection for writing, so that writers queue in the process instead of failing as busy. It
// keeps a few for reading, which never wait for the writer (WAL). A commit is on the disk when Update returns
// (synchronous=FULL). Updates that only write and end at the same time share one commit. Several processes
// may open one file on one machine; they wait for each other. New works on a database that the host opened
// and may share with its own tables: all tables of this package begin with payments_. The work is done in
// store/sqlstore, which store/postgres shares.
package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// Store is a store over SQLite. Its methods are those of store.Store.
type Store struct{ sqlstore.Store }

var _ store.Store = (*Store)(nil)

// Option changes how Open opens a file.
type Option func(*options)

type options struct {
	readers     int
	busyTimeout time.Duration
}

// WithReaders sets how many connections read. Defaults to the number of processors, at least 2 and
// at most 4: more of them starve the writer.
func WithReaders(n int) Option { return func(o *options) { o.readers = n } }

// WithBusyTimeout sets how long one try waits for another process that writes to the same file; an update
// tries several times. Defaults to 2 s.
func WithBusyTimeout(d time.Duration) Option { return func(o *options) { o.busyTimeout = d } }

// Open opens the file at path, which it makes if there is none, and brings its schema up to date. A
// file that a newer release wrote is refused with fault.Unavailable. Close the store when it is no
// longer needed.
func Open(path string, opts ...Option) (*Store, error) {
	o := options{readers: min(max(runtime.NumCPU(), 2), 4), busyTimeout: 2 * time.Second}
	for _, opt := range opts {
		opt(&o)
	}

	if path == "" || strings.Contains(path, ":memory:") {
		return nil, fault.New(
			fault.Invalid, "path_invalid",
			"%q names no file: use the store in package memory for one without",
			path,
		)
	}

	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the SQLite store: %w", err)
	}

	write, read, err := openPools(path, o)
	if err != nil {
		return nil, fmt.Errorf("open the SQLite store at %s: %w", path, err)
	}

	// Readers close first, so that the last connection is the one that may write the log back.
	shut := func() error {
		if err := read.Close(); err != nil {
			_ = write.Close()
			return err
		}

		return write.Close()
	}
	if err := Migrate(context.Background(), write); err != nil {
		_ = shut()
		return nil, fmt.Errorf("open the SQLite store at %s: %w", path, err)
	}

	same, err := sameFile(path)
	if err != nil {
		_ = shut()
		return nil, err
	}

	return newStore(sqlstore.Options{
		Probe:   same,
		Dialect: dialect(),
		Write:   write,
		Read:    read,
		Single:  true,
		Close:   shut,
	}), nil
}

// openPools opens the one connection that writes and the ones that read.
func openPools(path string, o options) (write, read *sql.DB, err error) {
	write, err = sql.Open("sqlite", dsn(path, o, "_txlock=immediate"))
	if err != nil {
		return nil, nil, err
	}

	write.SetMaxOpenConns(1)

	read, err = sql.Open("sqlite", dsn(path, o, "_pragma=query_only(1)"))
	if err != nil {
		_ = write.Close()
		return nil, nil, err
	}

	read.SetMaxOpenConns(o.readers)
	read.SetMaxIdleConns(o.readers)

	return write, read, nil
}

// sameFile returns a check that the path still leads to the file that is there now. A file that was deleted
// or replaced under the process still takes writes, but they are lost.
func sameFile(path string) (check func() error, err error) {
	opened, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open the SQLite store at %s: %w", path, err)
	}

	return func() error {
		now, err := os.Stat(path)
		if err == nil && os.SameFile(opened, now) {
			return nil
		}

		return fault.Wrap(
			err,
			fault.Unavailable,
			"database_gone",
			"the file %s was deleted or replaced under the process: what is written is lost; put it back and restart",
			path,
		)
	}, nil
}

// dsn returns the driver's data source name for the file.
func dsn(path string, o options, more string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}

	return fmt.Sprintf(
		"%s?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&%s",
		u.String(), o.busyTimeout.Milliseconds(), more,
	)
}

// New returns a store over a database that the host opened and closes, and whose schema the host brings up to
// date with Migrate or Migrations. The pool needs at least two connections if the host reads on the store
// while one of its own closures runs.
func New(db *sql.DB) *Store {
	return newStore(sqlstore.Options{Dialect: dialect(), Write: db})
}

func newStore(o sqlstore.Options) *Store {
	st, err := sqlstore.New(o)
	if err != nil {
		panic(err) // cannot happen: the dialect is complete
	}

	return &Store{st}
}

// Join returns a transaction inside the host's own and the function that sends its buffered writes, which the
// host calls before it commits. Nothing is retried: fault.Conflict goes to the host, which rolls back.
func Join(tx *sql.Tx) (joined store.Tx, flush func(ctx context.Context) error) {
	joined, flush, err := sqlstore.Join(dialect(), tx)
	if err != nil {
		panic(err) // cannot happen: the dialect is complete
	}

	return joined, flush
}

// SQLTx returns the SQL transaction under a transaction of a SQL store, so that a host's hook can write its
// own rows in it. It does not see writes that the store still buffers. The host must not end it. A hook must
// read through tx or the SQL transaction alone: any other read takes a second connection of the pool. If
// hooks hold all connections while each waits for a second one, they wait for ever.
//
// Errors, which a hook returns as they are: fault.Unsupported (transaction_not_sql) for other stores;
// fault.Unavailable and fault.Conflict when the database does not begin the transaction, or has ended it.
func SQLTx(tx store.Tx) (*sql.Tx, error) { return sqlstore.SQL(tx) }
