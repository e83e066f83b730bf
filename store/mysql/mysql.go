// Package mysql is a store in a MariaDB database (10.6 or newer). MySQL itself is not supported: it has
// neither SET STATEMENT nor @@in_transaction.
//
// New works on a database that the host opened with github.com/go-sql-driver/mysql and may share with its own
// tables: all tables of this package begin with payments_. The DSN needs parseTime=true, and has to leave
// clientFoundRows off and loc at UTC, as they are by default; interpolateParams=true saves two round trips
// per statement. The database ends a transaction that stands still for idle_transaction_timeout, so that a
// stopped process keeps no lock. If the DSN sets none, the store sets 10 s on the connections it uses. The
// work is done in store/sqlstore.
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

// countsChanges returns fault.Invalid if the connection also counts rows that a statement found but did not
// change. A claim of a taken key would then look successful.
func countsChanges(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	result, err := db.ExecContext(
		ctx, "UPDATE "+prefix+"schema_version SET version_id = version_id WHERE version_id = 1",
	)
	if err != nil {
		if explain(err).Code == "schema_mismatch" {
			return nil // the check of the schema's version reports it better
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

// Join returns a transaction inside the host's own and the function that sends its buffered writes, which the
// host calls before it commits. The host begins it at READ COMMITTED, on a connection without
// clientFoundRows. Nothing is retried: fault.Conflict goes to the host, which rolls back.
func Join(tx *sql.Tx) (joined store.Tx, flush func(ctx context.Context) error, err error) {
	return sqlstore.Join(dialect(), tx)
}

// SQLTx returns the SQL transaction under a transaction of a SQL store, so that a host's hook can write its
// own rows in it. It does not see writes that the store still buffers. The host must not end it. A hook must
// read through tx or the SQL transaction alone: any other read takes a second connection of the pool. If
// hooks hold all connections while each waits for a second one, they wait for ever.
//
// Errors, which a hook returns as they are: fault.Unsupported (transaction_not_sql) for other stores;
// fault.Unavailable and fault.Conflict when the database does not begin the transaction, or has ended it.
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

// Migrate brings the schema in db up to date. Processes that migrate at the same time wait for each other, by
// a row of the table payments_schema_lock. A schema of a newer release is fault.Unavailable and left alone.
// MariaDB commits each statement of a migration by itself: after an interrupted migration, restore the
// backup.
func Migrate(ctx context.Context, db *sql.DB) error {
	return sqlstore.Migrate(ctx, db, dialect(), nil)
}
