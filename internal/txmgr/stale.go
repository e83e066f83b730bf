package txmgr

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// failStale fails a transaction that has waited too long for its signature: a payout for payout.GiveUpAfter.
func (d *walletWorker) failStale(
	ctx context.Context,
	t wallet.Transaction,
) (stale bool, err error) { // spec 3.2.2
	if !walletstate.Stale(&t, d.now()) {
		return false, nil
	}

	return true, d.update(ctx, t.ID, fail(wallet.FailStale))
}
