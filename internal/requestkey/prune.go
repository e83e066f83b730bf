package requestkey

import (
	"context"
	"fmt"

	"github.com/seed-8ee7f392/payments/account/idempotency"
)

// pruneBatch is the number of records that one transaction deletes; small, so that it holds locks briefly.
const pruneBatch = 500

// Prune deletes one batch of records older than TTL. did is whether there may be more.
func Prune[T idempotency.Tx](ctx context.Context, c Config[T]) (did bool, err error) {
	before := c.Now().Add(-TTL)
	pruned := 0

	err = c.Update(ctx, func(ctx context.Context, tx T) (err error) {
		pruned, err = tx.PruneIdempotencyKeys(ctx, before, pruneBatch)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("prune idempotency keys: %w", err)
	}

	return pruned == pruneBatch, nil
}
