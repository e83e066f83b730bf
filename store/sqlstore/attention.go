package sqlstore

// This file counts the objects that wait or failed, for store.AttentionReader.

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/store"
)

// countedSettlements and failedPayouts may be many, so the database counts them; waiting objects are read.
const (
	countedSettlements = `SELECT network, status, reason, count(*) AS n, min(id) AS oldest,
		min(CASE WHEN status = 'held' THEN held_since ELSE failed_at END) AS since
		FROM {settlements} WHERE status IN ('held', 'failed') AND reason NOT IN ('payment_orphaned', 'replanning')
		GROUP BY network, status, reason`
	failedPayouts = `SELECT network, status, failure_code AS reason, count(*) AS n, min(id) AS oldest,
		min(failed_at) AS since
		FROM {payouts} WHERE failed_at IS NOT NULL AND failed_at >= ? AND status = 'failed'
		AND failure_code <> 'canceled' GROUP BY network, status, failure_code`
)

// mostWaiting bounds how many waiting settlements, and waiting payouts, are read.
const mostWaiting = 10_000

// attentionRow is a row of countedSettlements and failedPayouts.
type attentionRow struct {
	Network string `db:"network"`
	Status  string `db:"status"`
	Reason  string `db:"reason"`
	Count   int    `db:"n"`
	Oldest  string `db:"oldest"`
	Since   moment `db:"since"`
}

func (r *reader) Attention(ctx context.Context, failedSince time.Time) ([]health.Attention, error) {
	all, err := r.counted(ctx, "settlement", settlements.name, countedSettlements)
	if err != nil {
		return nil, err
	}

	failed, err := r.counted(ctx, "payout", payouts.name, failedPayouts, failedSince)
	if err != nil {
		return nil, err
	}

	all = append(all, failed...)

	releases := &query{}
	releases.has("waiting_since IS NOT NULL AND status IN ('pending', 'releasing')")

	waiting, err := list(ctx, r, settlements, releases, "ORDER BY id", mostWaiting)
	if err != nil {
		return nil, err
	}

	for _, s := range waiting {
		if a, ok := store.SettlementAttention(s); ok {
			all = append(all, a)
		}
	}

	sent := &query{}
	sent.has("waiting_since IS NOT NULL AND status IN ('pending', 'processing')")

	unsent, err := list(ctx, r, payouts, sent, "ORDER BY id", mostWaiting)
	if err != nil {
		return nil, err
	}

	for _, p := range unsent {
		if a, ok := store.PayoutAttention(p, failedSince); ok {
			all = append(all, a)
		}
	}

	return store.SumAttention(all), nil
}

// counted runs a query that counts the objects of a table.
func (r *reader) counted(
	ctx context.Context,
	object, table, template string,
	args ...any,
) (all []health.Attention, err error) {
	if err := r.flushTables(ctx, table); err != nil {
		return nil, err
	}

	var found []attentionRow

	err = r.retry(ctx, func() error {
		found = nil

		if err := r.ready(ctx); err != nil {
			return r.readError(ctx, err, "attention")
		}

		err := sqlx.SelectContext(ctx, r.on, &found, r.store.text(template), r.store.dialect.args(args)...)
		if err != nil {
			return r.readError(ctx, err, "attention")
		}

		return nil
	})

	for _, row := range found {
		all = append(all, health.Attention{
			Object:  object,
			Network: row.Network,
			Status:  row.Status,
			Reason:  row.Reason,
			Count:   row.Count,
			Oldest:  row.Oldest,
			Since:   time.Time(row.Since),
		})
	}

	return all, err
}
