package txmgr

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// FailStale fails the stale payouts of a network that is not served any more. They were not signed, so they
// were not sent, unless records are lost: then they wait for a person, as on a network that is served. It
// returns the transactions that wait for the network, and whether any failed.
func (o *Manager) FailStale(
	ctx context.Context,
	network string,
) (waiting []wallet.Transaction, did bool, err error) {
	if _, served := o.registry.Network(network); served || !o.config.MaySign() {
		return nil, false, nil
	}

	due, err := o.db.DueTransactions(ctx, network, o.now(), 0)
	if err != nil {
		return nil, false, err
	}

	for _, t := range due {
		failed := false

		if o.isStalePayout(t) {
			if failed, err = o.failStalePayout(ctx, t.ID); err != nil {
				return waiting, did, err
			}
		}

		did = did || failed

		if !failed && walletstate.Live(t) {
			waiting = append(waiting, t)
		}
	}

	return waiting, did, nil
}

// isStalePayout reports whether a transaction is a payout that was not signed in time.
func (o *Manager) isStalePayout(t wallet.Transaction) bool {
	return t.Kind == wallet.Payout && t.State == wallet.Queued && walletstate.Stale(&t, o.now())
}

// failStalePayout fails one payout, unless it was moved meanwhile or waits for a person.
func (o *Manager) failStalePayout(ctx context.Context, transactionID string) (failed bool, err error) {
	err = o.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		failed = false

		t, err := tx.Transaction(ctx, transactionID)
		if err != nil || !o.isStalePayout(t) {
			return err
		}

		err = o.refuseReviewTx(ctx, tx, t)
		if fault.Code(err) == codeAwaitingReview {
			return nil
		}

		if err != nil {
			return err
		}

		failed = true

		return failQueuedTx(ctx, tx, &t, wallet.FailStale)
	})

	return failed, err
}
