package postgres_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// pausing runs a function once, before the first statement that makes a table.
type pausing struct {
	once  sync.Once
	pause func(conn *pgx.Conn)
}

func (p *pausing) TraceQueryStart(
	ctx context.Context,
	conn *pgx.Conn,
	data pgx.TraceQueryStartData,
) context.Context {
	if strings.Contains(data.SQL, "CREATE TABLE payments_accounts") {
		p.once.Do(func() { p.pause(conn) })
	}

	return ctx
}

func (p *pausing) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// idleLimit is the limit of an idle transaction.
const idleLimit = "SELECT current_setting('idle_in_transaction_session_timeout')"

// outlived ends the lease of the process that migrates, as when it stood still.
const outlived = "UPDATE payments_schema_lock SET lease_expires_at = now() - interval '1 second'"

// A process that stands still while it migrates loses the lock, and its transaction: another migrates. The limit
// ends with the migration.
func TestStandstillDoesNotHoldMigrations(t *testing.T) {
	dsn := testenv.Postgres(t)
	standing, replaced := make(chan struct{}), make(chan struct{})

	var first *sql.DB

	first = migrating(t, dsn, func(conn *pgx.Conn) {
		var got string
		if err := conn.QueryRow(t.Context(), idleLimit).Scan(&got); err != nil || got != "1min" {
			t.Errorf("the limit of a migration is %q: %v", got, err)
		}

		// A minute would take that long.
		if _, err := conn.Exec(t.Context(), "SET idle_in_transaction_session_timeout = '200ms'"); err != nil {
			t.Error(err)
		}

		if _, err := first.ExecContext(t.Context(), outlived); err != nil {
			t.Error(err)
		}

		close(standing)
		<-replaced
	})

	stood := make(chan error, 1)
	go func() { stood <- postgres.Migrate(t.Context(), first, postgres.Options{}) }()

	<-standing

	second := migrating(t, dsn, func(*pgx.Conn) {})
	second.SetMaxOpenConns(2)

	if err := postgres.Migrate(t.Context(), second, postgres.Options{}); err != nil {
		t.Errorf("the other process: %v", err)
	}

	close(replaced)

	// It finds the work done by the other process.
	if err := <-stood; err != nil {
		t.Errorf("the process that stood still: %v", err)
	}

	// Both connections are as they were.
	for range 2 {
		conn, err := second.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		var got string
		if err := conn.QueryRowContext(t.Context(), idleLimit).Scan(&got); err != nil || got != "0" {
			t.Errorf("the limit after a migration is %q: %v", got, err)
		}
	}
}

// Two processes that both take themselves for the holder of the lock apply each version once, and both find the
// schema up to date.
func TestVersionsAreAppliedOnce(t *testing.T) {
	dsn := testenv.Postgres(t)
	other := migrating(t, dsn, func(*pgx.Conn) {})
	rival := make(chan error, 1)

	var first *sql.DB

	first = migrating(t, dsn, func(*pgx.Conn) {
		if _, err := first.ExecContext(t.Context(), outlived); err != nil {
			t.Error(err)
		}

		go func() { rival <- postgres.Migrate(t.Context(), other, postgres.Options{}) }()

		// The rival waits for what this one has locked.
		const waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
		for n := 0; n == 0 && t.Context().Err() == nil; {
			if err := first.QueryRowContext(t.Context(), waiting).Scan(&n); err != nil {
				t.Error(err)
				return
			}
		}
	})

	if err := postgres.Migrate(t.Context(), first, postgres.Options{}); err != nil {
		t.Errorf("the process whose lease ran out: %v", err)
	}

	if err := <-rival; err != nil {
		t.Errorf("the process that took the lock: %v", err)
	}

	var applied int
	if err := first.QueryRowContext(
		t.Context(), "SELECT count(*) FROM payments_schema_version WHERE version_id = 1",
	).Scan(&applied); err != nil || applied != 1 {
		t.Errorf("version 1 was applied %d times: %v", applied, err)
	}

	const again = "INSERT INTO payments_schema_version (version_id, is_applied) VALUES (1, true)"
	if _, err := first.ExecContext(t.Context(), again); err == nil {
		t.Error("the table of versions takes a version twice")
	}
}

// migrating opens a database whose migration pauses.
func migrating(t *testing.T, dsn string, pause func(conn *pgx.Conn)) *sql.DB {
	t.Helper()

	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}

	config.Tracer = &pausing{pause: pause}
	db := stdlib.OpenDB(*config)

	t.Cleanup(func() { _ = db.Close() })

	return db
}
