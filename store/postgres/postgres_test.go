package postgres_test

import (
	"database/sql"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testenv"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// database opens a new, empty database.
func database(t testing.TB, connections int) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

// open returns an empty store in a schema.
func open(t testing.TB, db *sql.DB, schema string) *postgres.Store {
	t.Helper()
	o := postgres.Options{Schema: schema}
	if err := postgres.Migrate(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
	st, err := postgres.New(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestConformance(t *testing.T) {
	conformance.TestStore(t, func(t *testing.T) store.Store { return open(t, database(t, 16), "") })
}
