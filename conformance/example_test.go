package conformance_test

import (
	"path/filepath"
	"testing"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// A store's test hands the suite new and empty stores. docs/write-a-store.md makes one from any ordered key-value
// engine.
func ExampleTestStore() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		conformance.TestStore(t, func(t *testing.T) store.Store {
			db, err := sqlite.Open(filepath.Join(t.TempDir(), "payments.db"))
			if err != nil {
				t.Fatal(err)
			}

			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})

			return db
		})
	}
}
