package sqlite

// This file holds the schema's versions.

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/seed-8ee7f392/payments/internal/sqlstore"
)

// versionTable is where goose keeps which versions were applied.
const versionTable = prefix + "schema_version"

//go:embed migrations/*.sql
var embedded embed.FS

var migrations = sqlstore.Sub(embedded, "migrations")

// Migrations are the files of the schema, for hosts that apply them with a tool of their own
// (goose, with the table payments_schema_version).
func Migrations() fs.FS { return migrations }

// Migrate brings the schema in db up to date. A schema of a newer release is fault.Unavailable and
// left alone.
func Migrate(ctx context.Context, db *sql.DB) error {
	have, err := schemaVersion(ctx, db)
	if err != nil {
		return sqlstore.Explain(explain, err, "read the version of the schema")
	}

	d := dialect()
	if have == d.WantVersion {
		return nil
	}

	if have > d.WantVersion {
		return d.Fits(have)
	}

	p, err := goose.NewProvider(
		goose.DialectSQLite3, db, migrations, goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return fmt.Errorf("prepare the migration of the schema: %w", err)
	}

	if _, err := p.Up(ctx); err != nil {
		return sqlstore.Explain(explain, err, "bring the schema up to date")
	}

	return nil
}
