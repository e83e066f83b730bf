package txmgr

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// A node says by an estimate of its own that a transaction cannot be made. One that lies or lags says it too, so
// nothing fails while what was read is not agreed on.

// refusalGrace is how long a queued step of a release is built again before it fails as refused: a fork may have taken
// what it moves, and bring it back.
const refusalGrace = 15 * time.Minute

// refusalStands reports whether a transaction that nodes refuse may fail: the last block that was read is agreed on,
// and a release has waited for refusalGrace.
func (d *walletWorker) refusalStands(ctx context.Context, t wallet.Transaction) (bool, error) {
	switch t.Kind {
	case wallet.TopUp, wallet.Fee, wallet.Sweep:
		if d.now().Sub(t.CreatedAt) < refusalGrace {
			return false, nil
		}
	default: // nobody waits for a fork
	}

	cursor, followed, err := d.db.Cursor(ctx, t.Network)
	if err != nil {
		return false, &storeError{err}
	}

	return !followed || d.agreedOn(ctx, cursor.At) == nil, nil
}
