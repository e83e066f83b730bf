//go:build unix

package httpapi_test

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/internal/testing/migrated"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func init() {
	storeKinds = append(
		storeKinds,
		storeKind{
			name:   "postgres",
			create: func(t *testing.T) string { return migrated.Postgres(t) },
			open:   openPostgres,
		},
	)
}

func openPostgres(t *testing.T, name string) payments.Store {
	config, err := pgx.ParseConfig(name)
	if err != nil {
		t.Fatal(err)
	}

	db := stdlib.OpenDB(*config)

	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(16)

	if err := postgres.Migrate(t.Context(), db, postgres.Options{}); err != nil {
		t.Fatal(err)
	}

	st, err := postgres.New(db, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}

	return st
}
