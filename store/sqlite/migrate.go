package sqlite

// This file holds the schema's versions.

import (
	"context"
	"database/sql"
	"io/fs"

	"github.com/seed-8ee7f392/payments/internal/sqlstore"
)

// Migrations are the files of the schema, for hosts that apply them with a tool of their own
// (goose, with the table payments_schema_version).
func Migrations() fs.FS {
	d := dialect()
	return d.Migrations()
}

// Migrate brings the schema in db up to date. A schema of a newer release is fault.Unavailable and
// left alone.
func Migrate(ctx context.Context, db *sql.DB) error { return sqlstore.Migrate(ctx, db, dialect(), nil) }
