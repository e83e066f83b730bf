//go:build unix

package migrated

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// Postgres returns the DSN of a new, migrated PostgreSQL database, which is dropped when the test ends.
func Postgres(t testing.TB) string {
	t.Helper()

	return testenv.PostgresCopy(t, "migrated", func(dsn string) error {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return err
		}

		db := stdlib.OpenDB(*config)

		return errors.Join(postgres.Migrate(context.Background(), db, postgres.Options{}), db.Close())
	})
}
