package sqlstore

// This file keeps settlements with their sweeps.

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/settlement"
)

var settlements = newTable("settlements", "settlement", 1,
	func(s *settlement.Settlement) *int64 { return &s.Version }, cols[settlement.Settlement](
		str("id", func(s *settlement.Settlement) *string { return &s.ID }),
		owned(func(s *settlement.Settlement) *event.Owner { return &s.Owner }),
		str("status", func(s *settlement.Settlement) *settlement.Status { return &s.Status }),
		str("payment_id", func(s *settlement.Settlement) *string { return &s.PaymentID }),
		str("invoice_id", func(s *settlement.Settlement) *string { return &s.InvoiceID }),
		str("deposit_address_id", func(s *settlement.Settlement) *string { return &s.DepositAddressID }),
		str("network", func(s *settlement.Settlement) *string { return &s.Network }),
		str("asset", func(s *settlement.Settlement) *string { return &s.Asset }),
		str("asset_id", func(s *settlement.Settlement) *string { return &s.AssetID }),
		str("native_asset", func(s *settlement.Settlement) *string { return &s.NativeAsset }),
		str("address", func(s *settlement.Settlement) *chain.Address { return &s.Deposit.Address }),
		key("address_key", func(s *settlement.Settlement) *chain.KeyRef { return &s.Deposit.Key }),
		amt("gross", func(s *settlement.Settlement) *chain.Amount { return &s.Gross }),
		dec("usd_value", func(s *settlement.Settlement) *decimal.Decimal { return &s.USDValue }),
		num("fee_bps", func(s *settlement.Settlement) *int { return &s.FeeBPS }),
		dec("fee_usd", func(s *settlement.Settlement) *decimal.Decimal { return &s.FeeUSD }),
		dec("native_price", func(s *settlement.Settlement) *decimal.Decimal { return &s.NativePrice }),
		amt("fee_native", func(s *settlement.Settlement) *chain.Amount { return &s.FeeNative }),
		str("fee_source", func(s *settlement.Settlement) *settlement.FeeSource { return &s.FeeSource }),
		amt("fee_paid", func(s *settlement.Settlement) *chain.Amount { return &s.FeePaid }),
		amt("fee_carried", func(s *settlement.Settlement) *chain.Amount { return &s.FeeCarried }),
		amt("carried_in", func(s *settlement.Settlement) *chain.Amount { return &s.CarriedIn }),
		amtOrNull(
			"required_native",
			func(s *settlement.Settlement) **chain.Amount { return &s.RequiredNative },
		),
		str(
			"master_wallet_address",
			func(s *settlement.Settlement) *chain.Address { return &s.MasterWalletAddress },
		),
		str("reason", func(s *settlement.Settlement) *settlement.Reason { return &s.Reason }),
		str("fee_tx", func(s *settlement.Settlement) *string { return &s.FeeTx }),
		str("topup_tx", func(s *settlement.Settlement) *string { return &s.TopUpTx }),
		str("sweep_tx", func(s *settlement.Settlement) *string { return &s.SweepTx }),
		amt("network_fees", func(s *settlement.Settlement) *chain.Amount { return &s.NetworkFees }),
		amtOrNull("net_released", func(s *settlement.Settlement) **chain.Amount { return &s.NetReleased }),
		yes("simulated", func(s *settlement.Settlement) *bool { return &s.Simulated }),
		str("sweep_id", func(s *settlement.Settlement) *string { return &s.SweepID }),
		at("confirmed_at", func(s *settlement.Settlement) *time.Time { return &s.ConfirmedAt }),
		at("held_since", func(s *settlement.Settlement) *time.Time { return &s.HeldSince }),
		at("released_at", func(s *settlement.Settlement) *time.Time { return &s.ReleasedAt }),
		at("failed_at", func(s *settlement.Settlement) *time.Time { return &s.FailedAt }),
		at("created_at", func(s *settlement.Settlement) *time.Time { return &s.CreatedAt }),
		at("due_at", func(s *settlement.Settlement) *time.Time { return &s.DueAt }),
		num("sequence", func(s *settlement.Settlement) *int64 { return &s.Sequence }),
	))

var sweeps = newTable(
	"sweeps",
	"sweep",
	1,
	func(r *settlement.Sweep) *int64 { return &r.Version },
	cols[settlement.Sweep](
		str("id", func(r *settlement.Sweep) *string { return &r.ID }),
		owned(func(r *settlement.Sweep) *event.Owner { return &r.Owner }),
		str("network", func(r *settlement.Sweep) *string { return &r.Network }),
		str("asset_id", func(r *settlement.Sweep) *string { return &r.AssetID }),
		str("address", func(r *settlement.Sweep) *chain.Address { return &r.Deposit.Address }),
		key("address_key", func(r *settlement.Sweep) *chain.KeyRef { return &r.Deposit.Key }),
		str("master_address", func(r *settlement.Sweep) *chain.Address { return &r.Master.Address }),
		key("master_key", func(r *settlement.Sweep) *chain.KeyRef { return &r.Master.Key }),
		doc("settlement_ids", func(r *settlement.Sweep) *[]string { return &r.SettlementIDs }),
		amt("amount", func(r *settlement.Sweep) *chain.Amount { return &r.Amount }),
		amt("fee", func(r *settlement.Sweep) *chain.Amount { return &r.Fee }),
		amt("carry_in", func(r *settlement.Sweep) *chain.Amount { return &r.CarryIn }),
		str("fee_address", func(r *settlement.Sweep) *chain.Address { return &r.FeeAddress }),
		amt("residue_in", func(r *settlement.Sweep) *chain.Amount { return &r.ResidueIn }),
		amt("residue_out", func(r *settlement.Sweep) *chain.Amount { return &r.ResidueOut }),
		doc("steps", func(r *settlement.Sweep) *[]settlement.Step { return &r.Steps }),
		yes("done", func(r *settlement.Sweep) *bool { return &r.Done }),
		at("due_at", func(r *settlement.Sweep) *time.Time { return &r.DueAt }),
		at("created_at", func(r *settlement.Sweep) *time.Time { return &r.CreatedAt }),
	),
)

var carryTable = newTable(
	"carried_fees",
	"carried fee",
	3,
	func(c *settlement.CarriedFee) *int64 { return &c.Version },
	cols[settlement.CarriedFee](
		owned(func(c *settlement.CarriedFee) *event.Owner { return &c.Owner }),
		str("network", func(c *settlement.CarriedFee) *string { return &c.Network }),
		amt("amount", func(c *settlement.CarriedFee) *chain.Amount { return &c.Amount }),
	),
)

var residues = newTable(
	"residues",
	"residue",
	2,
	func(r *settlement.Residue) *int64 { return &r.Version },
	cols[settlement.Residue](
		str("network", func(r *settlement.Residue) *string { return &r.Network }),
		str("address", func(r *settlement.Residue) *chain.Address { return &r.Address }),
		amt("amount", func(r *settlement.Residue) *chain.Amount { return &r.Amount }),
		amt("owed", func(r *settlement.Residue) *chain.Amount { return &r.Owed }),
	),
)

func (r *reader) Settlement(
	ctx context.Context,
	owner event.Owner,
	id string,
) (settlement.Settlement, error) {
	return get(ctx, r, settlements, id, func(s *settlement.Settlement) bool { return s.Owner == owner })
}

func (r *reader) SettlementsByID(ctx context.Context, ids []string) ([]settlement.Settlement, error) {
	return several(ctx, r, settlements, ids)
}

func (r *reader) SettlementsOfPayments(
	ctx context.Context,
	paymentIDs []string,
) ([]settlement.Settlement, error) {
	return among(ctx, r, settlements, "payment_id", paymentIDs, "", "1 = 1")
}

func (r *reader) Settlements(ctx context.Context, f settlement.Filter) ([]settlement.Settlement, error) {
	q := of(f.Owner, f.After, f.PaymentID, f.InvoiceID, f.DepositAddressID)
	anyOf(q, r, "status", f.Statuses, f.PaymentID != "" || f.InvoiceID != "" || f.DepositAddressID != "")
	oneOf(q, r, "network", f.Networks)
	q.is("payment_id", f.PaymentID)

	if f.InvoiceID != "" {
		q.has("invoice_id <> '' AND invoice_id = ?", f.InvoiceID)
	}

	if f.DepositAddressID != "" {
		q.has("deposit_address_id <> '' AND deposit_address_id = ?", f.DepositAddressID)
	}

	q.within("created_at", f.CreatedAfter, f.CreatedBefore)

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

	return list(ctx, r, settlements, q, "ORDER BY id", 0)
}

func (r *reader) Sweep(ctx context.Context, id string) (settlement.Sweep, error) {
	return get(ctx, r, sweeps, id, nil)
}

func (r *reader) LiveSweeps(ctx context.Context, network string, limit int) ([]settlement.Sweep, error) {
	q := &query{}
	q.has("done = ? AND network = ?", false, network)

	return list(ctx, r, sweeps, q, "ORDER BY id", limit)
}

func (tx *transaction) PutSettlements(ctx context.Context, s ...*settlement.Settlement) error {
	return putAll(ctx, tx, settlements, s)
}

func (tx *transaction) PutSweep(ctx context.Context, r *settlement.Sweep) error {
	return put(ctx, tx, sweeps, r)
}

func (tx *transaction) Carry(
	ctx context.Context,
	owner event.Owner,
	network string,
) (settlement.CarriedFee, bool, error) {
	return look(ctx, &tx.reader, carryTable, true, owner.AccountID, owner.Livemode, network)
}

func (tx *transaction) PutCarry(ctx context.Context, c *settlement.CarriedFee) error {
	return put(ctx, tx, carryTable, c)
}

func (tx *transaction) Residue(
	ctx context.Context,
	network string,
	address chain.Address,
) (settlement.Residue, bool, error) {
	return look(ctx, &tx.reader, residues, true, network, string(address))
}

func (tx *transaction) PutResidue(ctx context.Context, r *settlement.Residue) error {
	return put(ctx, tx, residues, r)
}
