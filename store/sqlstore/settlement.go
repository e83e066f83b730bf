package sqlstore

// This file keeps settlements with their sweeps.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/settlement"
)

var settlements = newTable[settlement.Settlement](
	"settlements", "settlement", "id",
	named("Deposit.Address", "address"),
	named("Deposit.Key", "address_key"),
	named("TopUpTx", "topup_tx"),
	foreign("ReasonMessage"),
)

const sweepsTable = "sweeps"

var sweeps = newTable[settlement.Sweep](
	sweepsTable, "sweep", "id",
	named("Deposit.Address", "address"),
	named("Deposit.Key", "address_key"),
	named("SettlementIDs", "settlement_ids"),
)

var carryTable = newTable[settlement.CarriedFee](
	"carried_fees", "carried fee", "account_id, livemode, network",
)

var residues = newTable[settlement.Residue]("residues", "residue", "network, address")

func (r *reader) Settlement(
	ctx context.Context,
	owner event.Owner,
	id string,
) (settlement.Settlement, error) {
	return owned(
		ctx,
		r,
		settlements,
		owner,
		id,
		func(s settlement.Settlement) event.Owner { return s.Owner },
	)
}

func (r *reader) SettlementsByID(ctx context.Context, ids []string) ([]settlement.Settlement, error) {
	return several(ctx, r, settlements, ids)
}

func (r *reader) SettlementsOfPayments(
	ctx context.Context,
	paymentIDs []string,
) ([]settlement.Settlement, error) {
	return amongOf(ctx, r, settlements, "payment_id", payments.name, paymentIDs)
}

func (r *reader) Settlements(ctx context.Context, f settlement.Filter) ([]settlement.Settlement, error) {
	q := of(r, f.Owner, f.After, f.PaymentID, f.InvoiceID, f.DepositAddressID)
	anyOf(q, "status", f.Statuses)
	oneOf(q, "network", f.Networks)
	q.is("payment_id", f.PaymentID)

	if f.InvoiceID != "" {
		q.has("invoice_id <> '' AND invoice_id = ?", f.InvoiceID)
	}

	if f.DepositAddressID != "" {
		q.has("deposit_address_id <> '' AND deposit_address_id = ?", f.DepositAddressID)
	}

	q.made("id", id.Bound, f.CreatedAfter, f.CreatedBefore)

	return list(ctx, r, settlements, q, newest, f.Limit)
}

func (r *reader) DueSettlements(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]settlement.Settlement, error) {
	q := &query{}
	q.has(
		"status IN ('pending', 'held', 'failed') AND due_at IS NOT NULL AND network = ? AND due_at <= ?",
		network, now,
	)
	q.has("(status <> 'failed' OR reason IN ('payment_orphaned', 'replanning'))")

	return list(ctx, r, settlements, q, "ORDER BY id", limit)
}

func (r *reader) SettlementsAt(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) ([]settlement.Settlement, error) {
	q := &query{}
	q.has(
		"status IN ('pending', 'held') AND network = ? AND address = ? AND asset_id = ?",
		network, string(address), assetID,
	)
	q.is("account_id", r.store.homes.common(byAddress, addressPlace(network, string(address))))

	return list(ctx, r, settlements, q, "ORDER BY id", 0)
}

func (r *reader) Sweep(ctx context.Context, id string) (settlement.Sweep, error) {
	return get(ctx, r, sweeps, id)
}

func (r *reader) DueSweeps(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]settlement.Sweep, error) {
	q := &query{}
	q.has("done = ? AND due_at IS NOT NULL AND network = ? AND due_at <= ?", false, network, now)

	return list(ctx, r, sweeps, q, "ORDER BY id", limit)
}

func (r *reader) SweepsAt(
	ctx context.Context,
	network string,
	addresses []chain.Address,
) ([]settlement.Sweep, error) {
	return among(ctx, r, sweeps, "address", texts(addresses), "", "done = ? AND network = ?", false, network)
}

func (tx *transaction) PutSettlements(ctx context.Context, s ...*settlement.Settlement) error {
	return putAll(ctx, tx, settlements, s)
}

func (tx *transaction) PutSweep(ctx context.Context, r *settlement.Sweep) error {
	return put(ctx, tx, sweeps, r)
}

func (r *reader) Carry(
	ctx context.Context,
	owner event.Owner,
	network string,
) (settlement.CarriedFee, bool, error) {
	return look(ctx, r, carryTable, false, owner.AccountID, owner.Livemode, network)
}

func (tx *transaction) CarryForUpdate(
	ctx context.Context,
	owner event.Owner,
	network string,
) (settlement.CarriedFee, bool, error) {
	return look(ctx, &tx.reader, carryTable, true, owner.AccountID, owner.Livemode, network)
}

func (tx *transaction) PutCarry(ctx context.Context, c *settlement.CarriedFee) error {
	return put(ctx, tx, carryTable, c)
}

func (r *reader) Residue(
	ctx context.Context,
	network string,
	address chain.Address,
) (settlement.Residue, bool, error) {
	return look(ctx, r, residues, false, network, string(address))
}

func (tx *transaction) ResidueForUpdate(
	ctx context.Context,
	network string,
	address chain.Address,
) (settlement.Residue, bool, error) {
	return look(ctx, &tx.reader, residues, true, network, string(address))
}

func (tx *transaction) PutResidue(ctx context.Context, r *settlement.Residue) error {
	return put(ctx, tx, residues, r)
}
