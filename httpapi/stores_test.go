package httpapi_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/internal/testing/migrated"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// storeKind is a store that the protocol of claims is tried on.
type storeKind struct {
	name string
	// create makes a new database and returns its name; nil when the store ends with the process.
	create func(t *testing.T) string
	// open opens it, until the test ends.
	open func(t *testing.T, name string) payments.Store
}

var storeKinds = []storeKind{
	{name: "memory", open: func(*testing.T, string) payments.Store { return memory.New() }},
	{
		name:   "sqlite",
		create: func(t *testing.T) string { return migrated.SQLite(t) },
		open: func(t *testing.T, name string) payments.Store {
			db, err := sqlite.Open(name)
			if err != nil {
				t.Fatal(err)
			}

			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})

			return db
		},
	},
}

// stores runs a test on a new database of each kind.
func stores(t *testing.T, f func(t *testing.T, db payments.Store)) {
	for _, kind := range storeKinds {
		t.Run(kind.name, func(t *testing.T) { f(t, kind.fresh(t)) })
	}
}

// fresh opens a new database.
func (k storeKind) fresh(t *testing.T) payments.Store {
	t.Helper()

	name := ""
	if k.create != nil {
		name = k.create(t)
	}

	return k.open(t, name)
}
