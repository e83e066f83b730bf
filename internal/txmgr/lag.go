package txmgr

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// The most that a network may be behind its node's tip while wallets sign: minLag blocks, or the blocks of
// lagTime.
const (
	minLag  = 3
	lagTime = 30 * time.Second
)

// Lags reports whether a network is stopped, or not read up to its tip: nothing new is signed there.
func (o *Manager) Lags(ctx context.Context, n chain.Network) (bool, error) {
	c, followed, err := o.db.Cursor(ctx, n.Slug)
	if err != nil {
		return false, &storeError{err}
	}

	return followed && (c.Stopped != "" || scanstate.Lags(c, minLag, lagTime)), nil
}

// postponeUnread postpones the transactions that cannot be signed while their network lags, all in one write,
// and returns the others.
func (o *Manager) postponeUnread(
	ctx context.Context,
	n chain.Network,
	due []wallet.Transaction,
) (others []wallet.Transaction, err error) {
	lags, err := o.Lags(ctx, n)
	if err != nil || !lags {
		return due, err
	}

	var waiting []string

	for _, t := range due {
		if t.State == wallet.Queued && t.Kind != wallet.Cancel && !walletstate.Stale(&t, o.now()) {
			waiting = append(waiting, t.ID)
		} else {
			others = append(others, t)
		}
	}

	if len(waiting) == 0 {
		return others, nil
	}

	return others, o.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		return postponeTx(ctx, tx, waiting, o.now(), waitsBehind)
	})
}

// postponeTx makes the queued ones among some transactions due after queuedRetryEvery, and records why they
// wait.
func postponeTx(ctx context.Context, tx wallet.Tx, ids []string, now time.Time, why string) error {
	for _, id := range ids {
		t, err := tx.Transaction(ctx, id)
		if err != nil {
			return err
		}

		if t.State != wallet.Queued {
			continue
		}

		before := t
		t.DueAt = now.Add(queuedRetryEvery)
		walletstate.Wait(&t, why, now)

		if err := tx.PutTransaction(ctx, &t); err != nil {
			return err
		}

		if !moved(t, before) {
			continue
		}

		if err := tx.AppendEvents(ctx, eventctx.About(t, event.TransactionMoved)...); err != nil {
			return err
		}
	}

	return nil
}
