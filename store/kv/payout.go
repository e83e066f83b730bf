package kv

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/payout"
)

var (
	payouts = newTable(
		50, "payout",
		func(p *payout.Payout) key { return keyOf(p.ID) },
		func(p *payout.Payout) *int64 { return &p.Version },
	)
	payoutsByOwner = payouts.ordered(1, func(p *payout.Payout) key { return keyOf(p.Owner) })
	payoutsByAge   = payouts.ordered(2, func(p *payout.Payout) key {
		return when(p.RefundID == "", p.Owner, p.CreatedAt)
	})

	refunds = newTable(
		51, "refund",
		func(r *payout.Refund) key { return keyOf(r.ID) },
		func(r *payout.Refund) *int64 { return &r.Version },
	)
	refundsByOwner = refunds.ordered(1, func(r *payout.Refund) key { return keyOf(r.Owner) })
)

func (r *reader) Payout(ctx context.Context, owner event.Owner, id string) (payout.Payout, error) {
	return get(ctx, r, payouts, id, func(p *payout.Payout) bool { return p.Owner == owner })
}

func (r *reader) PayoutByID(ctx context.Context, id string) (payout.Payout, error) {
	return get(ctx, r, payouts, id, nil)
}

func (r *reader) Payouts(ctx context.Context, f payout.Filter) ([]payout.Payout, error) {
	match := func(p *payout.Payout) bool {
		return passes(f.Statuses, p.Status) &&
			passes(f.Networks, p.Network) &&
			starts(f.Q, p.TxHash, string(p.Destination), p.ID)
	}

	bounded := page(f.After, f.Limit, match).made(id.Bound, f.CreatedAfter, f.CreatedBefore)

	return list(ctx, r, payoutsByOwner, keyOf(f.Owner), bounded)
}

func (r *reader) PayoutsSince(ctx context.Context, owner event.Owner, t time.Time) (int, error) {
	return count(ctx, r, payoutsByAge, keyOf(owner), window[payout.Payout]{from: since(t)})
}

func (r *reader) Refund(ctx context.Context, owner event.Owner, id string) (payout.Refund, error) {
	return get(ctx, r, refunds, id, func(x *payout.Refund) bool { return x.Owner == owner })
}

func (r *reader) RefundByID(ctx context.Context, id string) (payout.Refund, error) {
	return get(ctx, r, refunds, id, nil)
}

func (r *reader) Refunds(ctx context.Context, f payout.RefundFilter) ([]payout.Refund, error) {
	match := func(x *payout.Refund) bool {
		return passes(f.Statuses, x.Status) &&
			(f.InvoiceID == "" || x.InvoiceID == f.InvoiceID) &&
			(f.PaymentID == "" || x.PaymentID == f.PaymentID)
	}

	bounded := page(f.After, f.Limit, match).made(id.Bound, f.CreatedAfter, f.CreatedBefore)

	return list(ctx, r, refundsByOwner, keyOf(f.Owner), bounded)
}

func (tx *transaction) PutPayout(ctx context.Context, p *payout.Payout) error {
	return put(ctx, tx, payouts, p)
}

func (tx *transaction) PutRefund(ctx context.Context, r *payout.Refund) error {
	return put(ctx, tx, refunds, r)
}
