package postgres

// This file holds the schema's versions.

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// Migrations returns the files of the schema for the given schema name ("" for the first of the search
// path), for hosts that apply them with a tool of their own (goose, with the table
// payments_schema_version). The schema itself must be there. A name that Options would refuse is an
// error of every file read.
func Migrations(schema string) fs.FS {
	o := Options{Schema: schema}
	if err := o.check(); err != nil {
		return refused{err}
	}

	d := dialect(o)

	return d.Migrations()
}

type refused struct{ err error }

func (r refused) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: r.err}
}

// Migrate brings the tables in db up to date, and makes the schema of Options if there is none.
// Processes that migrate at once wait for each other for up to 5 minutes (a session lock: the connection
// must not go through a proxy that pools transactions); one that stands still for a minute loses the lock.
// A schema of a newer release is fault.Unavailable and left alone.
func Migrate(ctx context.Context, db *sql.DB, o Options) error {
	if err := o.check(); err != nil {
		return err
	}

	return sqlstore.Migrate(ctx, db, dialect(o), func(ctx context.Context) ([]goose.ProviderOption, error) {
		if err := o.makeSchema(ctx, db); err != nil {
			return nil, err
		}

		if err := keepsSessions(ctx, db); err != nil {
			return nil, err
		}

		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockRetry, lockTries))
		if err != nil {
			return nil, fmt.Errorf("prepare the migration of the schema: %w", err)
		}

		return []goose.ProviderOption{goose.WithSessionLocker(boundLocker{locker})}, nil
	})
}

// boundLocker is the lock of migrations, which a process that stands still does not keep: the database ends a session
// that is idle for a minute while it holds the lock. Limits of the host's own are left as they are.
type boundLocker struct{ lock.SessionLocker }

// boundSession sets the limits that are not set, of those that the server has.
const boundSession = `SELECT set_config(name, '60s', false) FROM pg_settings WHERE setting = '0'
AND name IN ('idle_in_transaction_session_timeout', 'idle_session_timeout')`

// unboundSession restores the limits with which the session began.
const unboundSession = `SELECT set_config(name, reset_val, false) FROM pg_settings
WHERE name IN ('idle_in_transaction_session_timeout', 'idle_session_timeout')`

// SessionLock waits for the lock.
//
// Errors: fault.Unavailable with code migration_busy when another process holds it for too long.
func (l boundLocker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if err := l.SessionLocker.SessionLock(ctx, conn); err != nil {
		if x := explain(err); ctx.Err() != nil || x.Word != nil {
			return err
		}

		return fault.Wrap(
			err,
			fault.Unavailable,
			"migration_busy",
			"another process has been migrating this database for %s; look whether it stands still, and try again",
			lockTries*lockRetry*time.Second,
		)
	}

	_, err := conn.ExecContext(ctx, boundSession)

	return err
}

// SessionUnlock releases the lock.
func (l boundLocker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, unboundSession); err != nil {
		return err
	}

	return l.SessionLocker.SessionUnlock(ctx, conn)
}

// makeSchema makes the schema of Options if there is none.
func (o Options) makeSchema(ctx context.Context, db *sql.DB) error {
	if o.Schema == "" {
		return nil
	}

	_, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+o.Schema)
	if err != nil && explain(err).Code != "duplicate" {
		return sqlstore.Explain(explain, err, "make the schema "+o.Schema)
	}

	return nil
}

// How long Migrate waits for another process that migrates: lockTries times lockRetry, in seconds.
const (
	lockRetry = 2
	lockTries = 150
)

// sessionProbe bounds keepsSessions.
const sessionProbe = 5 * time.Second

// keepsSessions fails with fault.Unavailable when statements of one connection do not reach one session of the
// server: the lock of a migration would then stay behind in a session that others use.
func keepsSessions(ctx context.Context, db *sql.DB) error {
	if db.Stats().MaxOpenConnections == 1 {
		return nil // there is no second connection to see it by
	}

	limited, cancel := context.WithTimeout(ctx, sessionProbe)
	defer cancel()

	conn, err := db.Conn(limited)
	if err != nil {
		return sqlstore.Explain(explain, err, "connect to the database")
	}
	defer conn.Close()

	// A pooler gives each transaction any session of the server. While one is taken by another transaction,
	// the next statement of the connection lands in a second one.
	var first, second int

	const session = "SELECT pg_backend_pid()"
	if err := conn.QueryRowContext(limited, session).Scan(&first); err != nil {
		return sqlstore.Explain(explain, err, "read the session of the connection")
	}

	other, err := db.Conn(limited)
	if err != nil {
		return sqlstore.Explain(explain, err, "connect to the database")
	}
	defer other.Close()

	held, err := other.BeginTx(limited, nil)
	if err != nil {
		return sqlstore.Explain(explain, err, "begin a transaction")
	}

	defer func() { _ = held.Rollback() }()

	if _, err := held.ExecContext(limited, session); err != nil {
		return sqlstore.Explain(explain, err, "read the session of a transaction")
	}

	err = conn.QueryRowContext(limited, session).Scan(&second)
	if err != nil && limited.Err() == nil {
		return sqlstore.Explain(explain, err, "read the session of the connection again")
	}

	// A pooler with one session has the second statement wait for the transaction.
	if err != nil && ctx.Err() == nil || first != second {
		return fault.New(
			fault.Unavailable, "session_pooled",
			"a proxy that pools transactions lies between this process and the database: run Migrate over a "+
				"connection to the database itself",
		)
	}

	return nil
}
