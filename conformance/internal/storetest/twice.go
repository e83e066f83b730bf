package storetest

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/store"
)

// errFirstRun rolls the first run of a closure back.
var errFirstRun = errors.New("conformance: run the closure again")

// twiceStore runs every closure twice and rolls the first run back, as a store may after a conflict.
type twiceStore struct{ store.Store }

// Update runs f twice. When the first run fails, it returns that error.
func (s twiceStore) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	err := s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := f(ctx, tx); err != nil {
			return err
		}

		return errFirstRun
	})
	if !errors.Is(err, errFirstRun) {
		return err
	}

	return s.Store.Update(ctx, f)
}
