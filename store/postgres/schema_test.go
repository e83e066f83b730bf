package postgres_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// The first schema of a search path is an installation of its own: tables behind it are another's.
func TestSearchPathLeadsToItsFirstSchemaAlone(t *testing.T) {
	dsn := testenv.Postgres(t)
	db := pool(t, dsn, 4, nil)
	first := open(t, db, "")

	if _, err := db.Exec("CREATE SCHEMA shop2"); err != nil {
		t.Fatal(err)
	}

	behind := pool(t, dsn, 4, func(c *pgx.ConnConfig) { c.RuntimeParams["search_path"] = "shop2, public" })

	second, err := postgres.New(behind, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}

	if err := second.Update(t.Context(), put("a")); fault.Code(err) != "schema_missing" {
		t.Errorf("over an empty schema: %v", err)
	}

	if err := postgres.Migrate(t.Context(), behind, postgres.Options{}); err != nil {
		t.Fatal(err)
	}

	if err := second.Update(t.Context(), put("a")); err != nil {
		t.Fatal(err)
	}

	if _, err := first.InvoiceByID(t.Context(), "a"); !errors.Is(err, fault.NotFound) {
		t.Errorf("an invoice of one installation in the other: %v", err)
	}
}

// Where the schema exists, a role that may make none migrates it.
func TestMigrateInASchemaThatExists(t *testing.T) {
	dsn := testenv.Postgres(t)

	if _, err := pool(t, dsn, 1, nil).Exec(
		"DO $$ BEGIN CREATE ROLE modest LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; " +
			"CREATE SCHEMA modest; GRANT ALL ON SCHEMA modest TO modest",
	); err != nil {
		t.Fatal(err)
	}

	db := pool(t, dsn, 4, func(c *pgx.ConnConfig) { c.User = "modest" })
	if err := postgres.Migrate(t.Context(), db, postgres.Options{Schema: "modest"}); err != nil {
		t.Fatal(err)
	}

	open(t, db, "modest")
}
