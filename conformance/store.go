package conformance

// TestStore: the suite for stores. Each of its tests gets a fresh, empty store.

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/store"
)

type storeTest struct {
	name string
	run  func(t *testing.T, st store.Store)
}

// storeTests are the parts of the suite; each is in the file of its name.
func storeTests() []storeTest {
	var all []storeTest
	for _, part := range [][]storeTest{
		storeFieldTests(),
		storeTransactionTests(),
		storeVersionTests(),
		storeListTests(),
		storeWorkTests(),
		storeConcurrencyTests(),
		storeWebhookTests(),
	} {
		all = append(all, part...)
	}

	return all
}

// TestStore runs the suite against stores that factory makes: a new, empty one per call, safe for
// concurrent use, and closed by a t.Cleanup of the factory.
func TestStore(t *testing.T, factory func(t *testing.T) store.Store) {
	for _, test := range storeTests() {
		t.Run(test.name, func(t *testing.T) { test.run(t, factory(t)) })
	}
}

// errAgain rolls the first run of a closure back.
var errAgain = errors.New("conformance: run the closure again")

// Twice returns a store that runs every closure twice and rolls the first run back, as a store may after a
// conflict. A closure that passes under it assigns to what it captured, and never appends.
func Twice(st store.Store) store.Store { return twice{st} }

type twice struct{ store.Store }

// Update runs f twice. When the first run fails, its error is the answer.
func (s twice) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	err := s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := f(ctx, tx); err != nil {
			return err
		}

		return errAgain
	})
	if !errors.Is(err, errAgain) {
		return err
	}

	return s.Store.Update(ctx, f)
}

// storeUpdate runs a closure that must succeed.
func storeUpdate(t testing.TB, st store.Store, f func(ctx context.Context, tx store.Tx) error) {
	t.Helper()

	if err := st.Update(t.Context(), f); err != nil {
		t.Fatalf("update: %v", err)
	}
}
