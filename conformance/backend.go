package conformance

import (
	"testing"

	"github.com/seed-8ee7f392/payments/conformance/internal/backendtest"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/kv"
)

// Backends opens the backends that TestBackend tests.
type Backends struct {
	// Open opens the backend whose files are in a directory, which is empty at first.
	Open func(dir string) (kv.Backend, error)
	// Volatile is set if no data outlives Close: then neither reopening nor a crash is tested.
	Volatile bool
}

// TestBackend tests a backend against the guarantees of kv.Backend, and then TestStore on the store that
// kv.Open makes of it:
//
//   - Values: values can be put, got, replaced and deleted, up to the sizes that the store needs. The last write of
//     a key counts, and a value that Get returned does not change later.
//   - Order: scans in both directions, between all bounds, of many keys, with the transaction's own writes.
//   - Rollback: nothing remains of a closure that fails or panics, or of an Update that returns an error.
//   - Isolation: a View is a snapshot, also inside an Update.
//   - Conflict: goroutines that read, put and delete the same keys end as if they had run in turns.
//   - Reopen, Crash: committed data is there after Close, and after the process was killed; no part of other data is.
//     A loss of power is not tested: how the engine syncs is its own option.
//
// Crash starts the test binary again with -test.run for this test, and kills it, five times.
func TestBackend(t *testing.T, backends Backends) {
	if backendtest.Child(t, backends.Open) {
		return
	}

	backendtest.Run(t, backends.Open)

	if !backends.Volatile {
		backendtest.Durability(t, backends.Open)
	}

	t.Run("Store", func(t *testing.T) {
		TestStore(t, func(t *testing.T) store.Store {
			backend, err := backends.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}

			st, err := kv.Open(t.Context(), backend)
			if err != nil {
				t.Fatal(err)
			}

			t.Cleanup(func() {
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			})

			return st
		})
	})
}
