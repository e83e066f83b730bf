package idempotency

import (
	"context"
	"fmt"
)

// pruneBatch is how many records one transaction deletes: few enough that nobody waits for it.
const pruneBatch = 500

// Prune deletes one batch of records that are older than TTL, which no request asks for any more.
// did says that there may be more.
func Prune[T Tx](ctx context.Context, c Config[T]) (did bool, err error) {
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
