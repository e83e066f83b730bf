package sqlstore

// This file keeps payments and the addresses they arrive at.

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
)

var payments = newTable(
	"payments",
	"payment",
	1,
	func(p *invoice.Payment) *int64 { return &p.Version },
	cols[invoice.Payment](
		str("id", func(p *invoice.Payment) *string { return &p.ID }),
		owned(func(p *invoice.Payment) *event.Owner { return &p.Owner }),
		str("status", func(p *invoice.Payment) *invoice.PaymentStatus { return &p.Status }),
		str("invoice_id", func(p *invoice.Payment) *string { return &p.InvoiceID }),
		str("option_id", func(p *invoice.Payment) *string { return &p.OptionID }),
		str("deposit_address_id", func(p *invoice.Payment) *string { return &p.DepositAddressID }),
		num("invoice_number", func(p *invoice.Payment) *int64 { return &p.InvoiceNumber }),
		str("deposit_address_name", func(p *invoice.Payment) *string { return &p.DepositAddressName }),
		str("network", func(p *invoice.Payment) *string { return &p.Network }),
		str("asset", func(p *invoice.Payment) *string { return &p.Asset }),
		str("asset_id", func(p *invoice.Payment) *string { return &p.AssetID }),
		str("contract", func(p *invoice.Payment) *chain.Address { return &p.Contract }),
		num("decimals", func(p *invoice.Payment) *uint8 { return &p.Decimals }),
		str("address", func(p *invoice.Payment) *chain.Address { return &p.Address }),
		key("address_key", func(p *invoice.Payment) *chain.KeyRef { return &p.Key }),
		str("from_address", func(p *invoice.Payment) *chain.Address { return &p.FromAddress }),
		str("tx_hash", func(p *invoice.Payment) *string { return &p.TxHash }),
		num("tx_index", func(p *invoice.Payment) *uint32 { return &p.TxIndex }),
		amt("amount", func(p *invoice.Payment) *chain.Amount { return &p.Amount }),
		block("block", func(p *invoice.Payment) *chain.Ref { return &p.Block }),
		num("confirmations_required", func(p *invoice.Payment) *uint64 { return &p.Required }),
		dec("rate", func(p *invoice.Payment) *decimal.Decimal { return &p.Rate }),
		dec("credit", func(p *invoice.Payment) *decimal.Decimal { return &p.Credit }),
		decOrNull("usd_value", func(p *invoice.Payment) *decimal.NullDecimal { return &p.USDValue }),
		decOrNull("native_usd", func(p *invoice.Payment) *decimal.NullDecimal { return &p.NativeUSD }),
		yes("late", func(p *invoice.Payment) *bool { return &p.Late }),
		yes("simulated", func(p *invoice.Payment) *bool { return &p.Simulated }),
		str("detected_by", func(p *invoice.Payment) *invoice.Detection { return &p.DetectedBy }),
		at("detected_at", func(p *invoice.Payment) *time.Time { return &p.DetectedAt }),
		at("confirmed_at", func(p *invoice.Payment) *time.Time { return &p.ConfirmedAt }),
		at("lost_at", func(p *invoice.Payment) *time.Time { return &p.LostAt }),
		at("due_at", func(p *invoice.Payment) *time.Time { return &p.DueAt }),
		num("sequence", func(p *invoice.Payment) *int64 { return &p.Sequence }),
		search("q_tx_hash", func(p *invoice.Payment) string { return p.TxHash }),
		search("q_address", func(p *invoice.Payment) string { return string(p.Address) }),
	),
)

var addresses = newTable("addresses", "address", 3, nil, cols[invoice.Address](
	str("space_family", func(a *invoice.Address) *chain.Family { return &a.Space.Family }),
	yes("space_livemode", func(a *invoice.Address) *bool { return &a.Space.Livemode }),
	str("address", func(a *invoice.Address) *chain.Address { return &a.Address }),
	str("kind", func(a *invoice.Address) *invoice.AddressKind { return &a.Kind }),
	owned(func(a *invoice.Address) *event.Owner { return &a.Owner }),
	str("invoice_id", func(a *invoice.Address) *string { return &a.InvoiceID }),
	str("option_id", func(a *invoice.Address) *string { return &a.OptionID }),
	str("deposit_address_id", func(a *invoice.Address) *string { return &a.DepositAddressID }),
	str("network", func(a *invoice.Address) *string { return &a.Network }),
	key("address_key", func(a *invoice.Address) *chain.KeyRef { return &a.Key }),
	at("created_at", func(a *invoice.Address) *time.Time { return &a.CreatedAt }),
	at("checked_at", func(a *invoice.Address) *time.Time { return &a.CheckedAt }),
	at("next_check", func(a *invoice.Address) *time.Time { return &a.NextCheck }),
	yes("urgent", func(a *invoice.Address) *bool { return &a.Urgent }),
))

var deposits = newTable("deposit_addresses", "deposit address", 1,
	func(d *invoice.DepositAddress) *int64 { return &d.Version }, cols[invoice.DepositAddress](
		str("id", func(d *invoice.DepositAddress) *string { return &d.ID }),
		owned(func(d *invoice.DepositAddress) *event.Owner { return &d.Owner }),
		str("name", func(d *invoice.DepositAddress) *string { return &d.Name }),
		str("network", func(d *invoice.DepositAddress) *string { return &d.Network }),
		str("address", func(d *invoice.DepositAddress) *chain.Address { return &d.Address }),
		key("address_key", func(d *invoice.DepositAddress) *chain.KeyRef { return &d.Key }),
		doc(
			"token_accounts",
			func(d *invoice.DepositAddress) *[]invoice.TokenAccount { return &d.TokenAccounts },
		),
		str("status", func(d *invoice.DepositAddress) *invoice.DepositStatus { return &d.Status }),
		doc("metadata", func(d *invoice.DepositAddress) *map[string]string { return &d.Metadata }),
		at("last_payment_at", func(d *invoice.DepositAddress) *time.Time { return &d.LastPaymentAt }),
		at("created_at", func(d *invoice.DepositAddress) *time.Time { return &d.CreatedAt }),
		num("sequence", func(d *invoice.DepositAddress) *int64 { return &d.Sequence }),
		search("q_name", func(d *invoice.DepositAddress) string { return d.Name }),
		search("q_address", func(d *invoice.DepositAddress) string { return string(d.Address) }),
	))

func (r *reader) Payment(ctx context.Context, owner event.Owner, id string) (invoice.Payment, error) {
	return get(ctx, r, payments, id, func(p *invoice.Payment) bool { return p.Owner == owner })
}

func (r *reader) PaymentByID(ctx context.Context, id string) (invoice.Payment, error) {
	return get(ctx, r, payments, id, nil)
}

func (r *reader) Payments(ctx context.Context, f invoice.PaymentFilter) ([]invoice.Payment, error) {
	q := of(f.Owner, f.After, f.InvoiceID, f.DepositAddressID)
	if f.InvoiceID != "" {
		q.has("invoice_id <> '' AND invoice_id = ?", f.InvoiceID)
	}

	if f.DepositAddressID != "" {
		q.has("deposit_address_id <> '' AND deposit_address_id = ?", f.DepositAddressID)
	}

	anyOf(q, r, "status", f.Statuses, f.InvoiceID != "" || f.DepositAddressID != "" || f.Q != "")
	oneOf(q, r, "network", f.Networks)
	q.within("detected_at", f.DetectedAfter, f.DetectedBefore)
	q.starts("payments", f.Owner, f.Q, "id", "q_tx_hash", "q_address")

	return list(ctx, r, payments, q, newest, f.Limit)
}

func (r *reader) PaymentsOfInvoice(ctx context.Context, invoiceID string) ([]invoice.Payment, error) {
	q := &query{}
	q.has("invoice_id <> '' AND invoice_id = ?", invoiceID)

	return list(ctx, r, payments, q, "ORDER BY id", 0)
}

func (r *reader) PaymentsByHash(
	ctx context.Context,
	network string,
	hashes []string,
) ([]invoice.Payment, error) {
	return among(ctx, r, payments, "tx_hash", hashes, "", "tx_hash <> '' AND network = ?", network)
}

func (r *reader) UnconfirmedPayments(
	ctx context.Context,
	network string,
	height uint64,
	limit int,
) ([]invoice.Payment, error) {
	q := &query{}
	q.has(
		"status = 'detected' AND block_hash <> '' AND network = ? AND block_height <= ?",
		network, int64(height),
	)

	return list(ctx, r, payments, q, "ORDER BY block_height, id", limit)
}

func (r *reader) UnminedPayments(ctx context.Context, network string) ([]invoice.Payment, error) {
	q := &query{}
	q.has("status IN ('detected', 'orphaned') AND block_hash = '' AND network = ?", network)

	return list(ctx, r, payments, q, "ORDER BY id", 0)
}

func (r *reader) PaymentsAbove(
	ctx context.Context,
	network string,
	height uint64,
) ([]invoice.Payment, error) {
	q := &query{}
	q.has(
		"status IN ('detected', 'confirmed') AND block_hash <> '' AND network = ? AND block_height > ?",
		network, int64(height),
	)

	return list(ctx, r, payments, q, "ORDER BY block_height, id", 0)
}

func (r *reader) BalancePayments(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) ([]invoice.Payment, error) {
	q := &query{}
	q.has(
		"status <> 'dropped' AND network = ? AND address = ? AND asset_id = ?",
		network, string(address), assetID,
	)

	return list(ctx, r, payments, q, "ORDER BY id", 0)
}

func (r *reader) DuePayments(ctx context.Context, now time.Time, limit int) ([]invoice.Payment, error) {
	q := &query{}
	q.has("due_at <= ?", now)

	return list(ctx, r, payments, q, "ORDER BY due_at, id", limit)
}

func (r *reader) MatchAddresses(
	ctx context.Context,
	space chain.Space,
	wanted []chain.Address,
) ([]invoice.Address, error) {
	return among(
		ctx, r, addresses, "address", texts(wanted), "", "space_family = ? AND space_livemode = ?",
		string(space.Family), space.Livemode,
	)
}

func (r *reader) AddressesSince(
	ctx context.Context,
	network string,
	kind invoice.AddressKind,
	since time.Time,
) ([]invoice.Address, error) {
	q := &query{}
	q.has("network = ? AND kind = ?", network, string(kind))

	if !since.IsZero() {
		q.has("created_at >= ?", since)
	}

	return list(ctx, r, addresses, q, "ORDER BY created_at DESC, address DESC", 0)
}

func (r *reader) AddressesAfter(
	ctx context.Context,
	space chain.Space,
	after chain.Address,
	limit int,
) ([]invoice.Address, error) {
	q := &query{}
	q.has(
		"space_family = ? AND space_livemode = ? AND address > ?",
		string(space.Family), space.Livemode, string(after),
	)

	return list(ctx, r, addresses, q, "ORDER BY address", limit)
}

func (r *reader) DueAddresses(
	ctx context.Context,
	network string,
	urgent bool,
	now time.Time,
	limit int,
) ([]invoice.Address, error) {
	q := &query{}
	q.has("network = ? AND urgent = ? AND next_check <= ?", network, urgent, now)

	return list(ctx, r, addresses, q, "ORDER BY next_check, address", limit)
}

func (r *reader) DepositAddress(
	ctx context.Context,
	owner event.Owner,
	id string,
) (invoice.DepositAddress, error) {
	return get(ctx, r, deposits, id, func(d *invoice.DepositAddress) bool { return d.Owner == owner })
}

func (r *reader) DepositAddresses(
	ctx context.Context,
	f invoice.DepositFilter,
) ([]invoice.DepositAddress, error) {
	q := of(f.Owner, f.After)
	oneOf(q, r, "status", f.Statuses)
	oneOf(q, r, "network", f.Networks)
	q.starts("deposit_addresses", f.Owner, f.Q, "id", "q_name", "q_address")

	return list(ctx, r, deposits, q, newest, f.Limit)
}

func (tx *transaction) PutPayments(ctx context.Context, all ...*invoice.Payment) error {
	return putAll(ctx, tx, payments, all)
}

func (tx *transaction) PutDepositAddress(ctx context.Context, d *invoice.DepositAddress) error {
	return put(ctx, tx, deposits, d)
}

func (tx *transaction) PutAddress(ctx context.Context, a invoice.Address) error {
	return add(ctx, tx, addresses, &a)
}

func (tx *transaction) UpdateAddresses(ctx context.Context, all ...invoice.Address) error {
	for i := range all {
		if err := set(ctx, tx, addresses, &all[i]); err != nil {
			return err
		}
	}

	return nil
}
