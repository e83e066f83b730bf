package postgres

// This file holds the schema's versions.

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/sqlstore"
)

//go:embed migrations/*.sql
var embedded embed.FS

// migrations are the files with {schema} in them.
var migrations = sqlstore.Sub(embedded, "migrations")

// versionTable returns the name of goose's table of applied versions.
func (o Options) versionTable() string { return o.prefix() + "schema_version" }

// Migrations returns the files of the schema for the given schema name ("" for the first of the search
// path), for hosts that apply them with a tool of their own (goose, with the table
// payments_schema_version). The schema itself must be there. A name that Options would refuse is an
// error of every file read.
func Migrations(schema string) fs.FS {
	o := Options{Schema: schema}
	if err := o.check(); err != nil {
		return refused{err}
	}

	out := fstest.MapFS{}
	_ = fs.WalkDir(migrations, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}

		text, err := fs.ReadFile(migrations, path)
		out[path] = &fstest.MapFile{
			Data: []byte(strings.ReplaceAll(string(text), "{schema}", o.qualifier())),
			Mode: 0o444,
		}

		return err
	})

	return out
}

type refused struct{ err error }

func (r refused) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: r.err}
}

// Migrate brings the tables in db up to date, and makes the schema of Options if there is none.
// Processes that migrate at once wait for each other (a session lock: the connection must not go
// through a proxy that pools transactions). A schema of a newer release is fault.Unavailable and
// left alone.
func Migrate(ctx context.Context, db *sql.DB, o Options) error {
	if err := o.check(); err != nil {
		return err
	}

	have, err := o.schemaVersion(ctx, db)
	if err != nil {
		return sqlstore.Explain(explain, err, "read the version of the schema")
	}

	target := dialect(o)
	if have == target.WantVersion {
		return nil
	}

	if have > target.WantVersion {
		return target.Fits(have)
	}

	if o.Schema != "" {
		_, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+o.Schema)
		if err != nil && explain(err).Code != "duplicate" {
			return sqlstore.Explain(explain, err, "make the schema "+o.Schema)
		}
	}

	if err := keepsSessions(ctx, db); err != nil {
		return err
	}

	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockRetry, lockTries))
	if err != nil {
		return fmt.Errorf("prepare the migration of the schema: %w", err)
	}

	provider, err := goose.NewProvider(
		goose.DialectPostgres, db, Migrations(o.Schema), goose.WithTableName(o.versionTable()),
		goose.WithDisableGlobalRegistry(true), goose.WithSessionLocker(locker),
	)
	if err != nil {
		return fmt.Errorf("prepare the migration of the schema: %w", err)
	}

	if _, err := provider.Up(ctx); err != nil {
		return sqlstore.Explain(explain, err, "bring the schema up to date")
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
		return nil // there is no second connection to tell by
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
