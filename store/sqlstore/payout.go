package sqlstore

// This file keeps payouts and refunds.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/payout"
)

const payoutsTable = "payouts"

var payouts = newTable[payout.Payout](
	payoutsTable, "payout", "id",
	foreign("FailureMessage"),
	foreign("ReasonMessage"),
	searchedBy("q_tx_hash", "TxHash"),
	searchedBy("q_destination", "Destination"),
)

var refunds = newTable[payout.Refund]("refunds", "refund", "id")

func (r *reader) Payout(ctx context.Context, owner event.Owner, id string) (payout.Payout, error) {
	return owned(ctx, r, payouts, owner, id, func(p payout.Payout) event.Owner { return p.Owner })
}

func (r *reader) PayoutByID(ctx context.Context, id string) (payout.Payout, error) {
	return get(ctx, r, payouts, id)
}

func (r *reader) Payouts(ctx context.Context, f payout.Filter) ([]payout.Payout, error) {
	q := of(r, f.Owner, f.After)
	q.starts(r, payouts.name, f.Owner, f.After, f.Q, "id", "q_tx_hash", "q_destination")
	anyOf(q, "status", f.Statuses)
	oneOf(q, "network", f.Networks)
	q.made("id", id.Bound, f.CreatedAfter, f.CreatedBefore)

	return list(ctx, r, payouts, q, newest, f.Limit)
}

func (r *reader) PayoutsSince(ctx context.Context, owner event.Owner, t time.Time) (int, error) {
	return r.count(
		ctx,
		payouts.name,
		"SELECT count(*) FROM {payouts} WHERE refund_id = '' AND account_id = ? AND livemode = ? AND created_at >= ?",
		owner.AccountID,
		owner.Livemode,
		t,
	)
}

func (r *reader) Refund(ctx context.Context, owner event.Owner, id string) (payout.Refund, error) {
	return owned(ctx, r, refunds, owner, id, func(x payout.Refund) event.Owner { return x.Owner })
}

func (r *reader) RefundByID(ctx context.Context, id string) (payout.Refund, error) {
	return get(ctx, r, refunds, id)
}

func (r *reader) Refunds(ctx context.Context, f payout.RefundFilter) ([]payout.Refund, error) {
	q := of(r, f.Owner, f.After, f.InvoiceID, f.PaymentID)
	anyOf(q, "status", f.Statuses)

	if f.InvoiceID != "" {
		q.has("invoice_id <> '' AND invoice_id = ?", f.InvoiceID)
	}

	if f.PaymentID != "" {
		q.has("payment_id <> '' AND payment_id = ?", f.PaymentID)
	}

	q.made("id", id.Bound, f.CreatedAfter, f.CreatedBefore)

	return list(ctx, r, refunds, q, newest, f.Limit)
}

func (tx *transaction) PutPayout(ctx context.Context, p *payout.Payout) error {
	return put(ctx, tx, payouts, p)
}

func (tx *transaction) PutRefund(ctx context.Context, r *payout.Refund) error {
	return put(ctx, tx, refunds, r)
}
