// Package mysql is a store in a MariaDB database (10.6 or newer). MySQL itself is not supported: it has
// neither SET STATEMENT nor @@in_transaction.
//
// New works on a database that the host opened with github.com/go-sql-driver/mysql and may share with its own
// tables: all of this package's begin with payments_. The DSN needs parseTime=true, and has to leave
// clientFoundRows off and loc at UTC, as they are by default; interpolateParams=true saves two round trips
// a statement. A transaction that stands still for idle_transaction_timeout is ended by the database, so that a
// stopped process keeps no lock: where the DSN sets none, the store sets 10 s on the connections it uses.
// The work is done in store/sqlstore.
package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// Store is a store over MariaDB. Its methods are those of store.Store, store.Prober and store.Clock.
type Store struct {
	sqlstore.Store
	db *sql.DB
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Clock = (*Store)(nil)
)

// New returns a store over a database that the host opened and closes, and whose schema the host
// brings up to date with Migrate or Migrations. It does not touch the database: the first use
// answers fault.Unavailable if the schema is not the one this code was written for, and fault.Invalid if
// the DSN has clientFoundRows.
func New(db *sql.DB) (*Store, error) {
	st, err := sqlstore.New(sqlstore.Options{
		Dialect: dialect(),
		Write:   db,
		Probe:   func() error { return countsChanges(context.Background(), db) },
	})
	if err != nil {
		return nil, fmt.Errorf("open the MariaDB store: %w", err)
	}

	return &Store{st, db}, nil
}

// probeTimeout bounds countsChanges.
const probeTimeout = 10 * time.Second

// countsChanges fails with fault.Invalid when the connection counts rows that a statement found and left as
// they were: a claim of a key that is taken would look like one that succeeded.
func countsChanges(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	result, err := db.ExecContext(
		ctx, "UPDATE "+prefix+"schema_version SET version_id = version_id WHERE version_id = 1",
	)
	if err != nil {
		if explain(err).Code == "schema_mismatch" {
			return nil // the check of the schema's version says so better
		}

		return sqlstore.Explain(explain, err, "check the connection")
	}

	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err
	}

	return fault.New(
		fault.Invalid, "client_found_rows", "the DSN of the MariaDB store sets clientFoundRows: leave it off",
	)
}

// Join returns a transaction inside the host's own and the function that sends what it buffered,
// which the host calls before it commits. The host begins it at READ COMMITTED, on a connection without
// clientFoundRows. Nothing is run again on its own: fault.Conflict goes to the host, which rolls back.
func Join(tx *sql.Tx) (joined store.Tx, flush func(ctx context.Context) error, err error) {
	return sqlstore.Join(dialect(), tx)
}

// SQLTx returns the SQL transaction under a transaction of a SQL store, so that a host's hook
// writes its own rows in it. What the store still buffers cannot be seen through it. The host must not end it. A hook
// reads through tx or the SQL transaction alone: any other read waits for another connection of the pool, without end
// where all of them are held by hooks that wait.
//
// Errors, which a hook returns as they are: fault.Unsupported (transaction_not_sql) for other stores; fault.Unavailable
// and fault.Conflict when the database does not begin the transaction, or has ended it.
func SQLTx(tx store.Tx) (*sql.Tx, error) { return sqlstore.SQL(tx) }

// Time returns the database's time.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	var microseconds int64

	const now = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
	if err := s.db.QueryRowContext(ctx, now).Scan(&microseconds); err != nil {
		return time.Time{}, sqlstore.Explain(explain, err, "read the database's clock")
	}

	return time.UnixMicro(microseconds).UTC(), nil
}

// Migrations are the files of the schema, for hosts that apply them with a tool of their own
// (goose, with the table payments_schema_version).
func Migrations() fs.FS {
	d := dialect()
	return d.Migrations()
}

// Migrate brings the schema in db up to date. Processes that migrate at once wait for each other, by a row
// of the table payments_schema_lock. A schema of a newer release is fault.Unavailable and left alone.
// MariaDB commits each statement of a migration by itself: after one that was cut off, restore the backup.
func Migrate(ctx context.Context, db *sql.DB) error {
	return sqlstore.Migrate(ctx, db, dialect(), nil)
}
