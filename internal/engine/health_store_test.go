//go:build unix

package engine

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/store/postgres"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// A database whose disk is full takes no write: Health is false and says why, and true again once there is space.
func TestHealthOverAFullDisk(t *testing.T) {
	config, err := pgx.ParseConfig(testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}

	db := stdlib.OpenDB(*config)

	t.Cleanup(func() { _ = db.Close() })

	if err := postgres.Migrate(t.Context(), db, postgres.Options{}); err != nil {
		t.Fatal(err)
	}

	st, err := postgres.New(db, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}

	c := newClinic(t, st)
	if report := c.passes(time.Minute); !report.OK() {
		t.Fatalf("while there is room: %+v", report.Checks)
	}

	// The server answers as it does when a table cannot grow.
	execute(t, db, `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`)
	execute(t, db, `CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON payments_leases
		FOR EACH ROW EXECUTE FUNCTION full_disk()`)

	report := c.passes(time.Minute)
	if got := check(t, report, "heartbeat"); report.OK() || !strings.Contains(got.Error, "disk is full") {
		t.Errorf("with a full disk: OK %v, %+v", report.OK(), got)
	}

	execute(t, db, `DROP TRIGGER full_disk ON payments_leases`)

	if report := c.passes(time.Minute); !report.OK() {
		t.Errorf("with room again: %+v", report.Checks)
	}
}

// A release that brings the schema up to date under a running process is noticed at the next look: nothing more is
// written, and Health says why.
func TestHealthOverANewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "payments.db")

	st, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()

	c := newClinic(t, st)
	c.config.Store = st // as a host passes it: with what it can beyond store.Store

	if report := c.passes(time.Minute); !report.OK() {
		t.Fatalf("before: %+v", report.Checks)
	}

	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	execute(t, db, "INSERT INTO payments_schema_version (version_id, is_applied) VALUES (99, true)")

	if paceStore > time.Minute/2 {
		t.Errorf("the store is looked at every %s", paceStore)
	}

	report := c.passes(paceStore)
	if got := check(t, report, "store"); report.OK() || !strings.Contains(got.Error, "newer release") {
		t.Errorf("after: OK %v, %+v", report.OK(), got)
	}

	_, err = c.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "schema_new" {
		t.Errorf("a write: %v", err)
	}
}

// A SQLite file that another process has locked takes no write either.
func TestHealthOverALockedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "payments.db")

	st, err := sqlite.Open(path, sqlite.WithBusyTimeout(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()

	c := newClinic(t, st)
	if report := c.passes(time.Minute); !report.OK() {
		t.Fatalf("while it is free: %+v", report.Checks)
	}

	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	db.SetMaxOpenConns(1)
	execute(t, db, "BEGIN IMMEDIATE")

	report := c.passes(time.Minute)
	if got := check(t, report, "heartbeat"); report.OK() || got.Error == "" {
		t.Errorf("while it is locked: OK %v, %+v", report.OK(), got)
	}

	execute(t, db, "ROLLBACK")

	if report := c.passes(time.Minute); !report.OK() {
		t.Errorf("once it is free: %+v", report.Checks)
	}
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()

	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
