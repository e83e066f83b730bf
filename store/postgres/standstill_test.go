package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testenv"
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

// idleLimits returns the limits of an idle session.
func idleLimits(t *testing.T, row func(text string) interface{ Scan(to ...any) error }) (limits string) {
	t.Helper()

	if err := row(
		`SELECT current_setting('idle_in_transaction_session_timeout') || ' ' ||
			current_setting('idle_session_timeout')`,
	).Scan(&limits); err != nil {
		t.Error(err)
	}

	return limits
}

// A process that stands still while it migrates loses its session, and with it the lock: another migrates. The
// limits end with the migration.
func TestStandstillDoesNotHoldMigrations(t *testing.T) {
	dsn := testenv.Postgres(t)
	standing, replaced := make(chan struct{}), make(chan struct{})

	first := migrating(t, dsn, func(conn *pgx.Conn) {
		got := idleLimits(t, func(text string) interface{ Scan(to ...any) error } {
			return conn.QueryRow(t.Context(), text)
		})
		if got != "1min 1min" {
			t.Errorf("the limits of a migration are %q", got)
		}

		// A minute would take that long.
		if _, err := conn.Exec(t.Context(), "SET idle_in_transaction_session_timeout = '200ms'"); err != nil {
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

	if err := <-stood; !errors.Is(err, fault.Unavailable) {
		t.Errorf("the process that stood still: %v", err)
	}

	// Both connections are as they were.
	for range 2 {
		conn, err := second.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		got := idleLimits(t, func(text string) interface{ Scan(to ...any) error } {
			return conn.QueryRowContext(t.Context(), text)
		})
		if got != "0 0" {
			t.Errorf("the limits after a migration are %q", got)
		}
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
