package kv

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/settlement"
)

var (
	settlements = newTable(
		40, "settlement",
		func(s *settlement.Settlement) key { return keyOf(s.ID) },
		func(s *settlement.Settlement) *int64 { return &s.Version },
	)
	settlementsByOwner = settlements.ordered(
		1,
		func(s *settlement.Settlement) key { return keyOf(s.Owner) },
	)
	settlementsByPayment = settlements.ordered(
		2,
		func(s *settlement.Settlement) key { return keyOf(s.PaymentID) },
	)
	settlementsWaiting = settlements.ordered(3, func(s *settlement.Settlement) key {
		return when(!s.DueAt.IsZero() && (waiting(s) || healing(s)), s.Network)
	})
	settlementsAt = settlements.ordered(4, func(s *settlement.Settlement) key {
		return when(waiting(s), s.Network, s.Deposit.Address, s.AssetID)
	})

	sweeps = newTable(
		41, "release",
		func(r *settlement.Sweep) key { return keyOf(r.ID) },
		func(r *settlement.Sweep) *int64 { return &r.Version },
	)
	sweepsWaiting = sweeps.ordered(1, func(r *settlement.Sweep) key {
		return when(!r.Done && !r.DueAt.IsZero(), r.Network)
	})
	sweepsAt = sweeps.ordered(2, func(r *settlement.Sweep) key {
		return when(!r.Done, r.Network, r.Deposit.Address)
	})

	carriedFees = newTable(
		42, "carried fee",
		func(c *settlement.CarriedFee) key { return keyOf(c.Owner, c.Network) },
		func(c *settlement.CarriedFee) *int64 { return &c.Version },
	)
	residues = newTable(
		43, "residue",
		func(r *settlement.Residue) key { return keyOf(r.Network, r.Address) },
		func(r *settlement.Residue) *int64 { return &r.Version },
	)
)

func waiting(s *settlement.Settlement) bool {
	return s.Status == settlement.Pending || s.Status == settlement.Held
}

// healing reports whether a settlement failed for a reason that goes away by itself.
func healing(s *settlement.Settlement) bool {
	return s.Status == settlement.Failed &&
		(s.Reason == settlement.PaymentOrphaned || s.Reason == settlement.Replanning)
}

func (r *reader) Settlement(
	ctx context.Context,
	owner event.Owner,
	id string,
) (settlement.Settlement, error) {
	return get(ctx, r, settlements, id, func(s *settlement.Settlement) bool { return s.Owner == owner })
}

func (r *reader) SettlementsByID(ctx context.Context, ids []string) ([]settlement.Settlement, error) {
	return several(ctx, r, settlements, settlements.byID(ids))
}

func (r *reader) SettlementsOfPayments(
	ctx context.Context,
	paymentIDs []string,
) ([]settlement.Settlement, error) {
	prefixes := make([]key, len(paymentIDs))
	for i, id := range paymentIDs {
		prefixes[i] = keyOf(id)
	}

	return among(ctx, r, settlementsByPayment, prefixes, window[settlement.Settlement]{})
}

func (r *reader) Settlements(ctx context.Context, f settlement.Filter) ([]settlement.Settlement, error) {
	ix, prefix := settlementsByOwner, keyOf(f.Owner)
	if f.PaymentID != "" {
		ix, prefix = settlementsByPayment, keyOf(f.PaymentID)
	}

	match := func(s *settlement.Settlement) bool {
		return s.Owner == f.Owner &&
			passes(f.Statuses, s.Status) &&
			passes(f.Networks, s.Network) &&
			(f.InvoiceID == "" || s.InvoiceID == f.InvoiceID) &&
			(f.DepositAddressID == "" || s.DepositAddressID == f.DepositAddressID)
	}
	bounded := page(f.After, f.Limit, match).made(id.Bound, f.CreatedAfter, f.CreatedBefore)

	return list(ctx, r, ix, prefix, bounded)
}

func (r *reader) DueSettlements(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]settlement.Settlement, error) {
	isDue := func(s *settlement.Settlement) bool { return !s.DueAt.After(now) }

	return list(
		ctx, r, settlementsWaiting, keyOf(network),
		window[settlement.Settlement]{limit: limit, match: isDue},
	)
}

func (r *reader) SettlementsAt(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) ([]settlement.Settlement, error) {
	return list(
		ctx, r, settlementsAt, keyOf(network, address, assetID),
		window[settlement.Settlement]{},
	)
}

func (r *reader) Sweep(ctx context.Context, id string) (settlement.Sweep, error) {
	return get(ctx, r, sweeps, id, nil)
}

func (r *reader) DueSweeps(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]settlement.Sweep, error) {
	isDue := func(s *settlement.Sweep) bool { return !s.DueAt.After(now) }

	return list(ctx, r, sweepsWaiting, keyOf(network), window[settlement.Sweep]{limit: limit, match: isDue})
}

func (r *reader) SweepsAt(
	ctx context.Context,
	network string,
	addresses []chain.Address,
) ([]settlement.Sweep, error) {
	prefixes := make([]key, len(addresses))
	for i, address := range addresses {
		prefixes[i] = keyOf(network, address)
	}

	return among(ctx, r, sweepsAt, prefixes, window[settlement.Sweep]{})
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
	return try(ctx, r, carriedFees, carriedFees.at(owner, network))
}

func (tx *transaction) CarryForUpdate(
	ctx context.Context,
	owner event.Owner,
	network string,
) (settlement.CarriedFee, bool, error) {
	return tx.Carry(ctx, owner, network)
}

func (tx *transaction) PutCarry(ctx context.Context, c *settlement.CarriedFee) error {
	return put(ctx, tx, carriedFees, c)
}

func (r *reader) Residue(
	ctx context.Context,
	network string,
	address chain.Address,
) (settlement.Residue, bool, error) {
	return try(ctx, r, residues, residues.at(network, address))
}

func (tx *transaction) ResidueForUpdate(
	ctx context.Context,
	network string,
	address chain.Address,
) (settlement.Residue, bool, error) {
	return tx.Residue(ctx, network, address)
}

func (tx *transaction) PutResidue(ctx context.Context, r *settlement.Residue) error {
	return put(ctx, tx, residues, r)
}
