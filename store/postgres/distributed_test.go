package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testenv"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

var distributed = postgres.Options{Distributed: true}

// TestDistributedConformance is the whole suite on a cluster of three nodes.
func TestDistributedConformance(t *testing.T) {
	testenv.OnlyStores(t)

	config, err := pgx.ParseConfig(testenv.Citus(t, 3).DSN)
	if err != nil {
		t.Fatal(err)
	}

	db := sqlOpen(t, config)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)

	if err := postgres.Migrate(t.Context(), db, distributed); err != nil {
		t.Fatal(err)
	}

	conformance.TestStore(t, func(t *testing.T) store.Store {
		empty(t, db)

		st, err := postgres.New(db, distributed)
		if err != nil {
			t.Fatal(err)
		}

		return st
	})
}
