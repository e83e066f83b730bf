package sqlstore

// This file keeps payouts and refunds.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/payout"
)

var payouts = newTable(
	"payouts",
	"payout",
	1,
	func(p *payout.Payout) *int64 { return &p.Version },
	cols[payout.Payout](
		str("id", func(p *payout.Payout) *string { return &p.ID }),
		owned(func(p *payout.Payout) *event.Owner { return &p.Owner }),
		str("status", func(p *payout.Payout) *payout.Status { return &p.Status }),
		str("network", func(p *payout.Payout) *string { return &p.Network }),
		str("asset", func(p *payout.Payout) *string { return &p.Asset }),
		str("asset_id", func(p *payout.Payout) *string { return &p.AssetID }),
		str("contract", func(p *payout.Payout) *chain.Address { return &p.Contract }),
		num("decimals", func(p *payout.Payout) *uint8 { return &p.Decimals }),
		amt("amount", func(p *payout.Payout) *chain.Amount { return &p.Amount }),
		str("destination", func(p *payout.Payout) *chain.Address { return &p.Destination }),
		str("memo", func(p *payout.Payout) *string { return &p.Memo }),
		str("tx_hash", func(p *payout.Payout) *string { return &p.TxHash }),
		str("refund_id", func(p *payout.Payout) *string { return &p.RefundID }),
		str("failure_code", func(p *payout.Payout) *string { return &p.FailureCode }),
		note("failure_message", func(p *payout.Payout) *string { return &p.FailureMessage }),
		str("conflict_tx_hash", func(p *payout.Payout) *string { return &p.Conflict.TxHash }),
		yes("conflict_own", func(p *payout.Payout) *bool { return &p.Conflict.Own }),
		doc("requested_by", func(p *payout.Payout) *payout.Requester { return &p.RequestedBy }),
		str("native_asset", func(p *payout.Payout) *string { return &p.NativeAsset }),
		num("native_decimals", func(p *payout.Payout) *uint8 { return &p.NativeDecimals }),
		amt("max_network_fee", func(p *payout.Payout) *chain.Amount { return &p.MaxNetworkFee }),
		amtOrNull("network_fee", func(p *payout.Payout) **chain.Amount { return &p.NetworkFee }),
		str("transaction_id", func(p *payout.Payout) *string { return &p.TransactionID }),
		at("created_at", func(p *payout.Payout) *time.Time { return &p.CreatedAt }),
		at("confirmed_at", func(p *payout.Payout) *time.Time { return &p.ConfirmedAt }),
		at("failed_at", func(p *payout.Payout) *time.Time { return &p.FailedAt }),
		doc("approval", func(p *payout.Payout) *payout.Approval { return &p.Approval }),
		blob("mac", func(p *payout.Payout) *[]byte { return &p.MAC }),
		num("sequence", func(p *payout.Payout) *int64 { return &p.Sequence }),
		search("q_tx_hash", func(p *payout.Payout) string { return p.TxHash }),
		search("q_destination", func(p *payout.Payout) string { return string(p.Destination) }),
	),
)

var refunds = newTable(
	"refunds",
	"refund",
	1,
	func(r *payout.Refund) *int64 { return &r.Version },
	cols[payout.Refund](
		str("id", func(r *payout.Refund) *string { return &r.ID }),
		owned(func(r *payout.Refund) *event.Owner { return &r.Owner }),
		str("status", func(r *payout.Refund) *payout.RefundStatus { return &r.Status }),
		str("invoice_id", func(r *payout.Refund) *string { return &r.InvoiceID }),
		str("payment_id", func(r *payout.Refund) *string { return &r.PaymentID }),
		str("payout_id", func(r *payout.Refund) *string { return &r.PayoutID }),
		str("network", func(r *payout.Refund) *string { return &r.Network }),
		str("asset", func(r *payout.Refund) *string { return &r.Asset }),
		str("asset_id", func(r *payout.Refund) *string { return &r.AssetID }),
		str("contract", func(r *payout.Refund) *chain.Address { return &r.Contract }),
		num("decimals", func(r *payout.Refund) *uint8 { return &r.Decimals }),
		amt("amount", func(r *payout.Refund) *chain.Amount { return &r.Amount }),
		str("destination", func(r *payout.Refund) *chain.Address { return &r.Destination }),
		str("reason", func(r *payout.Refund) *string { return &r.Reason }),
		doc("metadata", func(r *payout.Refund) *map[string]string { return &r.Metadata }),
		doc("requested_by", func(r *payout.Refund) *payout.Requester { return &r.RequestedBy }),
		yes("simulated", func(r *payout.Refund) *bool { return &r.Simulated }),
		str("failure_code", func(r *payout.Refund) *string { return &r.FailureCode }),
		at("created_at", func(r *payout.Refund) *time.Time { return &r.CreatedAt }),
		at("succeeded_at", func(r *payout.Refund) *time.Time { return &r.SucceededAt }),
		at("failed_at", func(r *payout.Refund) *time.Time { return &r.FailedAt }),
		num("sequence", func(r *payout.Refund) *int64 { return &r.Sequence }),
	),
)

func (r *reader) Payout(ctx context.Context, owner event.Owner, id string) (payout.Payout, error) {
	return get(ctx, r, payouts, id, func(p *payout.Payout) bool { return p.Owner == owner })
}

func (r *reader) PayoutByID(ctx context.Context, id string) (payout.Payout, error) {
	return get(ctx, r, payouts, id, nil)
}

func (r *reader) Payouts(ctx context.Context, f payout.Filter) ([]payout.Payout, error) {
	q := of(f.Owner, f.After)
	anyOf(q, r, "status", f.Statuses, f.Q != "")
	oneOf(q, r, "network", f.Networks)
	q.within("created_at", f.CreatedAfter, f.CreatedBefore)
	q.starts("payouts", f.Owner, f.Q, "id", "q_tx_hash", "q_destination")

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
	return get(ctx, r, refunds, id, func(x *payout.Refund) bool { return x.Owner == owner })
}

func (r *reader) RefundByID(ctx context.Context, id string) (payout.Refund, error) {
	return get(ctx, r, refunds, id, nil)
}

func (r *reader) Refunds(ctx context.Context, f payout.RefundFilter) ([]payout.Refund, error) {
	q := of(f.Owner, f.After, f.InvoiceID, f.PaymentID)
	anyOf(q, r, "status", f.Statuses, f.InvoiceID != "" || f.PaymentID != "")

	if f.InvoiceID != "" {
		q.has("invoice_id <> '' AND invoice_id = ?", f.InvoiceID)
	}

	if f.PaymentID != "" {
		q.has("payment_id <> '' AND payment_id = ?", f.PaymentID)
	}

	q.within("created_at", f.CreatedAfter, f.CreatedBefore)

	return list(ctx, r, refunds, q, newest, f.Limit)
}

func (tx *transaction) PutPayout(ctx context.Context, p *payout.Payout) error {
	return put(ctx, tx, payouts, p)
}

func (tx *transaction) PutRefund(ctx context.Context, r *payout.Refund) error {
	return put(ctx, tx, refunds, r)
}
