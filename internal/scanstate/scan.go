package scanstate

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain/scan"
)

// DB is the follower's view of a store.
type DB interface {
	scan.Reader
	Update(ctx context.Context, f func(ctx context.Context, tx scan.Tx) error) error
}
