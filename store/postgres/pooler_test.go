package postgres_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8ee7f392/payments/internal/testing/sqltest"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// Several processes migrate at once over a pooler that gives each transaction another session, and each over a pool
// of one connection: the lock of migrations is no session's.
func TestMigrateThroughATransactionPooler(t *testing.T) {
	for name, sessions := range map[string]int{"one session": 1, "several": 3} {
		t.Run(name, func(t *testing.T) {
			dsn := testenv.PgBouncer(t, testenv.Postgres(t), sessions)

			limited, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()

			var work sync.WaitGroup

			for range 3 {
				db := pooledDB(t, dsn)
				db.SetMaxOpenConns(1)

				work.Go(func() {
					if err := postgres.Migrate(limited, db, postgres.Options{}); err != nil {
						t.Errorf("through the pooler: %v", err)
					}
				})
			}

			work.Wait()

			db := pooledDB(t, dsn)

			st, err := postgres.New(db, postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}

			if err := st.Update(limited, put("there")); err != nil {
				t.Errorf("a write through the pooler: %v", err)
			}

			var locked bool
			if err := db.QueryRowContext(
				limited, "SELECT bool_or(locked) FROM payments_schema_lock",
			).Scan(&locked); err != nil || locked {
				t.Errorf("the lock is still held: %t, %v", locked, err)
			}
		})
	}
}

// TestConformanceThroughATransactionPooler is the whole suite over a pooler, for make stores.
func TestConformanceThroughATransactionPooler(t *testing.T) {
	testenv.OnlyStores(t)

	direct, pooled := poolers(t)
	testConformanceOf(t, direct, pooled)
}

// Every query of the library, and a transaction of each kind, over a pooler that gives each transaction another
// session: nothing relies on what a session keeps.
func TestQueriesThroughATransactionPooler(t *testing.T) {
	direct, pooled := poolers(t)

	open(t, direct, "")

	st, err := postgres.New(pooled, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}

	if err := st.Update(t.Context(), put("there")); err != nil {
		t.Fatal(err)
	}

	changed := changing(func(context.Context, store.Tx) error { return nil })

	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			if err := st.Update(t.Context(), changed); err != nil {
				t.Errorf("an update: %v", err)
			}
		})
	}

	for _, q := range sqltest.Queries() {
		if err := q.Run(t.Context(), st); err != nil {
			t.Errorf("%s: %v", q.Name, err)
		}
	}

	work.Wait()

	inv, err := st.InvoiceByID(t.Context(), "there")
	if err != nil || inv.Version != 5 {
		t.Errorf("after 4 updates of it the invoice has version %d: %v", inv.Version, err)
	}
}

// poolers opens a new database directly, and through a pooler with fewer sessions than it has clients.
func poolers(t *testing.T) (direct, pooled *sql.DB) {
	t.Helper()

	dsn := testenv.Postgres(t)

	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}

	direct = sqlOpen(t, config)
	pooled = pooledDB(t, testenv.PgBouncer(t, dsn, 8))
	pooled.SetMaxOpenConns(16)
	pooled.SetMaxIdleConns(16)

	return direct, pooled
}

// pooledDB opens a database behind a pooler as docs/many-processes.md says.
func pooledDB(t *testing.T, dsn string) *sql.DB {
	t.Helper()

	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}

	config.DefaultQueryExecMode = pgx.QueryExecModeExec

	db := sqlOpen(t, config)
	db.SetMaxOpenConns(4)

	return db
}
