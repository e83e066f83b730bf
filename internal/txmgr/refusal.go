package txmgr

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// A node's estimate may show that a transaction cannot be made. A node that lies or lags may claim the same.
// So no transaction fails by it until nodes agree about the last block that was read.

// refusalGrace is the time for which a queued step of a release is built again before it fails as refused. A
// fork may have removed its money, and may restore it.
const refusalGrace = 15 * time.Minute

// refusalStands reports whether a transaction that nodes refuse may fail: nodes agree about the last block
// that was read, and a step of a release has waited for refusalGrace.
func (d *walletWorker) refusalStands(ctx context.Context, t wallet.Transaction) (bool, error) {
	switch t.Kind {
	case wallet.TopUp, wallet.Fee, wallet.Sweep:
		if d.now().Sub(t.CreatedAt) < refusalGrace {
			return false, nil
		}
	default: // other kinds do not wait for a fork
	}

	cursor, followed, err := d.db.Cursor(ctx, t.Network)
	if err != nil {
		return false, &storeError{err}
	}

	return !followed || d.agreedOn(ctx, cursor.At) == nil, nil
}
