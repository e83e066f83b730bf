package kv

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
)

var (
	payments = newTable(
		12, "payment",
		func(p *invoice.Payment) key { return keyOf(p.ID) },
		func(p *invoice.Payment) *int64 { return &p.Version },
	)
	_ = payments.unique(1, func(p *invoice.Payment) key {
		return when(p.TxHash != "", p.Network, p.TxHash, p.TxIndex, p.Address, p.AssetID)
	})
	paymentsByOwner   = payments.ordered(2, func(p *invoice.Payment) key { return keyOf(p.Owner) })
	paymentsByInvoice = payments.ordered(3, func(p *invoice.Payment) key {
		return when(p.InvoiceID != "", p.InvoiceID)
	})
	paymentsByDeposit = payments.ordered(4, func(p *invoice.Payment) key {
		return when(p.DepositAddressID != "", p.DepositAddressID)
	})
	paymentsByHash = payments.ordered(5, func(p *invoice.Payment) key {
		return when(p.TxHash != "", p.Network, p.TxHash)
	})
	paymentsUnconfirmed = payments.ordered(6, func(p *invoice.Payment) key {
		return when(p.Status == invoice.Detected && !p.Block.IsZero(), p.Network, p.Block.Height)
	})
	paymentsUnmined = payments.ordered(7, func(p *invoice.Payment) key {
		waits := p.Status == invoice.Detected || p.Status == invoice.Orphaned
		return when(waits && p.Block.IsZero(), p.Network)
	})
	// paymentsInBlocks indexes the payments that a reorganisation may remove.
	paymentsInBlocks = payments.ordered(8, func(p *invoice.Payment) key {
		active := p.Status == invoice.Detected || p.Status == invoice.Confirmed
		return when(active && !p.Block.IsZero(), p.Network, p.Block.Height)
	})
	paymentsByAddress = payments.ordered(9, func(p *invoice.Payment) key {
		return when(p.Status != invoice.Dropped, p.Network, p.Address, p.AssetID)
	})
	paymentsByDue = payments.ordered(10, func(p *invoice.Payment) key {
		return when(!p.DueAt.IsZero(), p.DueAt)
	})
)

func (r *reader) Payment(ctx context.Context, owner event.Owner, id string) (invoice.Payment, error) {
	return get(ctx, r, payments, id, func(p *invoice.Payment) bool { return p.Owner == owner })
}

func (r *reader) PaymentByID(ctx context.Context, id string) (invoice.Payment, error) {
	return get(ctx, r, payments, id, nil)
}

func (r *reader) Payments(ctx context.Context, f invoice.PaymentFilter) ([]invoice.Payment, error) {
	ix, prefix := paymentsByOwner, keyOf(f.Owner)
	switch {
	case f.InvoiceID != "":
		ix, prefix = paymentsByInvoice, keyOf(f.InvoiceID)
	case f.DepositAddressID != "":
		ix, prefix = paymentsByDeposit, keyOf(f.DepositAddressID)
	}

	return list(ctx, r, ix, prefix, page(f.After, f.Limit, func(p *invoice.Payment) bool {
		return p.Owner == f.Owner &&
			passes(f.Statuses, p.Status) &&
			passes(f.Networks, p.Network) &&
			(f.DepositAddressID == "" || p.DepositAddressID == f.DepositAddressID) &&
			starts(f.Q, p.TxHash, string(p.Address), p.ID) &&
			within(p.DetectedAt, f.DetectedAfter, f.DetectedBefore)
	}))
}

func (r *reader) PaymentsOfInvoices(ctx context.Context, invoiceIDs []string) ([]invoice.Payment, error) {
	prefixes := make([]key, len(invoiceIDs))
	for i, id := range invoiceIDs {
		prefixes[i] = keyOf(id)
	}

	return among(ctx, r, paymentsByInvoice, prefixes, window[invoice.Payment]{})
}

func (r *reader) PaymentsByHash(
	ctx context.Context,
	network string,
	hashes []string,
) ([]invoice.Payment, error) {
	return among(ctx, r, paymentsByHash, each(network, hashes), window[invoice.Payment]{})
}

func (r *reader) UnconfirmedPayments(
	ctx context.Context,
	network string,
	height uint64,
	limit int,
) ([]invoice.Payment, error) {
	w := window[invoice.Payment]{to: upTo(height), limit: limit}

	return list(ctx, r, paymentsUnconfirmed, keyOf(network), w)
}

func (r *reader) UnminedPayments(ctx context.Context, network string) ([]invoice.Payment, error) {
	return list(ctx, r, paymentsUnmined, keyOf(network), window[invoice.Payment]{})
}

func (r *reader) PaymentsAbove(
	ctx context.Context,
	network string,
	height uint64,
) ([]invoice.Payment, error) {
	return list(ctx, r, paymentsInBlocks, keyOf(network), window[invoice.Payment]{from: upTo(height)})
}

func (r *reader) BalancePayments(
	ctx context.Context,
	network string,
	addresses []chain.Address,
) ([]invoice.Payment, error) {
	return among(ctx, r, paymentsByAddress, each(network, addresses), window[invoice.Payment]{})
}

func (r *reader) DuePayments(ctx context.Context, now time.Time, limit int) ([]invoice.Payment, error) {
	return list(ctx, r, paymentsByDue, nil, window[invoice.Payment]{to: upTo(now), limit: limit})
}

func (tx *transaction) PutPayments(ctx context.Context, all ...*invoice.Payment) error {
	return putAll(ctx, tx, payments, all)
}
