package sqlstore

// This file keeps payments and the addresses they arrive at.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
)

var payments = newTable[invoice.Payment](
	"payments", "payment", "id",
	named("Key", "address_key"),
	named("Required", "confirmations_required"),
	searchedBy("q_tx_hash", "TxHash"),
	searchedBy("q_address", "Address"),
)

var addresses = newTable[invoice.Address](
	"addresses", "address", "space_family, space_livemode, address",
	named("Key", "address_key"),
)

var deposits = newTable[invoice.DepositAddress](
	"deposit_addresses", "deposit address", "id",
	named("Key", "address_key"),
	searchedBy("q_name", "Name"),
	searchedBy("q_address", "Address"),
)

func (r *reader) Payment(ctx context.Context, owner event.Owner, id string) (invoice.Payment, error) {
	return owned(ctx, r, payments, owner, id, func(p invoice.Payment) event.Owner { return p.Owner })
}

func (r *reader) PaymentByID(ctx context.Context, id string) (invoice.Payment, error) {
	return get(ctx, r, payments, id)
}

func (r *reader) Payments(ctx context.Context, f invoice.PaymentFilter) ([]invoice.Payment, error) {
	q := of(r, f.Owner, f.After, f.InvoiceID, f.DepositAddressID)
	q.starts(r, payments.name, f.Owner, f.After, f.Q, "id", "q_tx_hash", "q_address")

	if f.InvoiceID != "" {
		q.has("invoice_id <> '' AND invoice_id = ?", f.InvoiceID)
	}

	if f.DepositAddressID != "" {
		q.has("deposit_address_id <> '' AND deposit_address_id = ?", f.DepositAddressID)
	}

	anyOf(q, "status", f.Statuses)
	oneOf(q, "network", f.Networks)
	q.within("detected_at", f.DetectedAfter, f.DetectedBefore)

	return list(ctx, r, payments, q, newest, f.Limit)
}

func (r *reader) PaymentsOfInvoices(ctx context.Context, invoiceIDs []string) ([]invoice.Payment, error) {
	accounts := r.store.homes.all(invoices.name, invoiceIDs...)
	order, condition := "ORDER BY id", "invoice_id <> ''"

	return amongHomes(ctx, r, payments, accounts, "invoice_id", invoiceIDs, order, condition)
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
	addresses []chain.Address,
) ([]invoice.Payment, error) {
	places := make([]string, len(addresses))
	for i, address := range addresses {
		places[i] = addressPlace(network, string(address))
	}

	accounts := r.store.homes.all(byAddress, places...)
	condition := "status <> 'dropped' AND network = ?"

	return amongHomes(ctx, r, payments, accounts, "address", texts(addresses), "", condition, network)
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
	return owned(ctx, r, deposits, owner, id, func(d invoice.DepositAddress) event.Owner { return d.Owner })
}

func (r *reader) DepositAddresses(
	ctx context.Context,
	f invoice.DepositFilter,
) ([]invoice.DepositAddress, error) {
	q := of(r, f.Owner, f.After)
	q.starts(r, deposits.name, f.Owner, f.After, f.Q, "id", "q_name", "q_address")
	oneOf(q, "status", f.Statuses)
	oneOf(q, "network", f.Networks)

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
