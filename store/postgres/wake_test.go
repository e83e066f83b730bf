package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

func TestWaker(t *testing.T) {
	conformance.TestWaker(t, func(t *testing.T) conformance.WakerHarness {
		dsn := testenv.Postgres(t)

		db, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() {
			_ = db.Close()

			goleak.VerifyNone(t, goleak.IgnoreCurrent())
		})

		waker := func(schema string) *postgres.Store {
			st, err := postgres.New(
				db,
				postgres.Options{
					Schema:     schema,
					ListenConn: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, dsn) },
				},
			)
			if err != nil {
				t.Fatal(err)
			}

			return st
		}

		return conformance.WakerHarness{
			A:        waker("shop"),
			B:        waker("shop"),
			Stranger: waker(""),
			Cut: func() {
				if _, err := db.Exec(
					"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = " +
						"current_database() AND query LIKE 'LISTEN %'",
				); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// Without Options.ListenConn, Wake and Wakes do nothing and send no statement.
func TestNoListenConn(t *testing.T) {
	db := stdlib.OpenDB(pgx.ConnConfig{}) // no database at all
	defer db.Close()

	st, err := postgres.New(db, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}

	if err := st.Wake(t.Context(), "p"); err != nil {
		t.Errorf("Wake: %v", err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()

	if err := st.Wakes(ctx, func(string) { t.Error("something is heard") }); err != nil {
		t.Errorf("Wakes: %v", err)
	}
}

func TestListenConnDown(t *testing.T) {
	db, err := sql.Open("pgx", "postgres://nobody@127.0.0.1:1/nothing?connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	st, err := postgres.New(db, postgres.Options{
		ListenConn: func(ctx context.Context) (*pgx.Conn, error) {
			return pgx.Connect(ctx, "postgres://nobody@127.0.0.1:1/nothing?connect_timeout=1")
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	for what, err := range map[string]error{
		"Wake":  st.Wake(t.Context(), "p"),
		"Wakes": st.Wakes(t.Context(), func(string) {}),
	} {
		if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "database_down" {
			t.Errorf("%s without a database answered %v", what, err)
		}
	}
}
