package invoice

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/fault"
)

// update runs f in a transaction and returns its result.
func update[T any](
	ctx context.Context,
	s *Service,
	f func(ctx context.Context, tx Tx) (T, error),
) (T, error) {
	var out T

	err := s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		out, err = f(ctx, tx)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}

	return out, nil
}

// commit prepares and commits, and prepares again if the preparation is stale; see retryStale.
func commit[T any](ctx context.Context, s *Service, prepare func() (Commit[T], error)) (T, error) {
	return retryStale(func() (T, error) {
		store, err := prepare()
		if err != nil {
			var none T
			return none, err
		}

		return update(ctx, s, store)
	})
}

// retryStale runs a whole operation, preparation included, up to 4 times while the preparation is stale: a
// quote expired, a price was not read, or a unique value was taken. Such values are an imported address at a
// fresh index, and a payment that another source stored first.
func retryStale[T any](f func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		result, err := f()

		stale := errors.Is(err, fault.Duplicate) || errors.Is(err, fault.Conflict) ||
			errors.Is(err, ErrUnprepared)
		if err == nil || try == 4 || !stale {
			return result, err
		}
	}
}
