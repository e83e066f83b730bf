package txmgr

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// DB is the part of the store that internal/txmgr uses.
type DB interface {
	wallet.Reader
	// Ranges is that of scan.Reader.
	Ranges(ctx context.Context, network string, limit int) ([]scan.Range, error)
	Update(ctx context.Context, f func(ctx context.Context, tx wallet.Tx) error) error
}
