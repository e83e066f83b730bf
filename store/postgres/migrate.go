package postgres

// This file holds the schema's versions.

import (
	"context"
	"database/sql"
	"io/fs"

	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// Migrations returns the files of the schema for the given schema name ("" for the first of the search path).
// They are for hosts that apply them with a tool of their own (goose, with the table
// payments_schema_version). The schema itself must exist. If Options would refuse the name, every read of a
// file returns the error.
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

// Migrate brings the tables in db up to date, and makes the schema of Options if there is none. Processes
// that migrate at the same time wait for each other for up to 5 minutes, by a row of the table
// payments_schema_lock. This also works through a proxy that pools transactions. If a process stands still in
// a migration for a minute, it loses the migration. A schema of a newer release is fault.Unavailable and left
// alone.
func Migrate(ctx context.Context, db *sql.DB, o Options) error {
	if err := o.check(); err != nil {
		return err
	}

	return sqlstore.Migrate(
		ctx,
		db,
		dialect(o),
		func(ctx context.Context) error { return o.makeSchema(ctx, db) },
	)
}

// boundMigration has the database end a migration that stands still for a minute, which releases its locks.
// The limit ends with the transaction of the migration. If the host has set a limit, it is left as it is.
const boundMigration = `SELECT set_config(name, '60s', true) FROM pg_settings
WHERE name = 'idle_in_transaction_session_timeout' AND setting = '0';`

// tableExists finds a table by its name with a schema, or in the first schema of the search path. A table in
// a later schema belongs to another installation.
const tableExists = `SELECT count(*) FROM (SELECT CAST(? AS text) AS name) asked
JOIN pg_catalog.pg_class c ON c.oid = to_regclass(asked.name)
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE asked.name LIKE '%.%' OR n.nspname = current_schema()`

// makeSchema makes the schema of Options if there is none. If it exists, the right to make schemas is not
// needed.
func (o Options) makeSchema(ctx context.Context, db *sql.DB) error {
	if o.Schema == "" {
		return nil
	}

	var found bool

	err := db.QueryRowContext(
		ctx, "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1)", o.Schema,
	).Scan(&found)
	if err == nil && !found {
		_, err = db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+o.Schema)
	}

	if err != nil && explain(err).Code != "duplicate" {
		return sqlstore.Explain(explain, err, "make the schema "+o.Schema)
	}

	return nil
}
