package memory

// This file keeps settlements with their releases, payouts and refunds.

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

var (
	settlements = newKind(
		"settlement", func(s *settlement.Settlement) string { return s.ID },
		func(s *settlement.Settlement) *int64 { return &s.Version },
	)
	settlementsByOwner = settlements.ordered(func(s *settlement.Settlement) (string, string, bool) {
		return ownerKey(s.Owner), s.ID, true
	})
	settlementsByPayment = settlements.ordered(
		func(s *settlement.Settlement) (string, string, bool) { return s.PaymentID, s.ID, true },
	)
	settlementsWaiting = settlements.ordered(func(s *settlement.Settlement) (string, string, bool) {
		return s.Network, s.ID, !s.DueAt.IsZero() && (waiting(s) || healing(s))
	})
	settlementsAt = settlements.ordered(func(s *settlement.Settlement) (string, string, bool) {
		return join(s.Network, string(s.Deposit.Address), s.AssetID), s.ID, waiting(s)
	})

	releases = newKind(
		"release", func(r *settlement.Sweep) string { return r.ID },
		func(r *settlement.Sweep) *int64 { return &r.Version },
	)
	releasesLive = releases.ordered(
		func(r *settlement.Sweep) (string, string, bool) { return r.Network, r.ID, !r.Done },
	)

	carryKind = newKind(
		"carry", func(c *settlement.CarriedFee) string { return join(ownerKey(c.Owner), c.Network) },
		func(c *settlement.CarriedFee) *int64 { return &c.Version },
	)
	residues = newKind(
		"residue", func(r *settlement.Residue) string { return join(r.Network, string(r.Address)) },
		func(r *settlement.Residue) *int64 { return &r.Version },
	)

	payouts = newKind("payout",
		func(p *payout.Payout) string { return p.ID }, func(p *payout.Payout) *int64 { return &p.Version })
	payoutsByOwner = payouts.ordered(
		func(p *payout.Payout) (string, string, bool) { return ownerKey(p.Owner), p.ID, true },
	)
	payoutsByAge = payouts.ordered(func(p *payout.Payout) (string, string, bool) {
		return ownerKey(p.Owner), join(moment(p.CreatedAt), p.ID), p.RefundID == ""
	})

	refunds = newKind("refund",
		func(r *payout.Refund) string { return r.ID }, func(r *payout.Refund) *int64 { return &r.Version })
	refundsByOwner = refunds.ordered(
		func(r *payout.Refund) (string, string, bool) { return ownerKey(r.Owner), r.ID, true },
	)
)

func waiting(s *settlement.Settlement) bool {
	return s.Status == settlement.Pending || s.Status == settlement.Held
}

// healing reports whether a settlement failed for a reason that passes by itself.
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
	return several(ctx, r, settlements, ids)
}

func (r *reader) SettlementsOfPayments(
	ctx context.Context,
	paymentIDs []string,
) ([]settlement.Settlement, error) {
	var out []settlement.Settlement

	for _, id := range slices.Compact(slices.Sorted(slices.Values(paymentIDs))) {
		found, err := scanRows(ctx, r, settlementsByPayment, id, window[settlement.Settlement]{})
		if err != nil {
			return nil, err
		}

		out = append(out, found...)
	}

	return out, nil
}

func (r *reader) Settlements(ctx context.Context, f settlement.Filter) ([]settlement.Settlement, error) {
	match := func(s *settlement.Settlement) bool {
		return passes(f.Statuses, s.Status) && passes(f.Networks, s.Network) &&
			(f.PaymentID == "" || s.PaymentID == f.PaymentID) &&
			(f.InvoiceID == "" || s.InvoiceID == f.InvoiceID) &&
			(f.DepositAddressID == "" || s.DepositAddressID == f.DepositAddressID) &&
			within(s.CreatedAt, f.CreatedAfter, f.CreatedBefore)
	}

	return scanRows(ctx, r, settlementsByOwner, ownerKey(f.Owner), page(f.After, f.Limit, match))
}

func (r *reader) DueSettlements(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]settlement.Settlement, error) {
	isDue := func(s *settlement.Settlement) bool { return due(s.DueAt, now) }

	return scanRows(
		ctx, r, settlementsWaiting, network,
		window[settlement.Settlement]{limit: limit, match: isDue},
	)
}

func (r *reader) SettlementsAt(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) ([]settlement.Settlement, error) {
	balance := join(network, string(address), assetID)

	return scanRows(ctx, r, settlementsAt, balance, window[settlement.Settlement]{})
}

func (r *reader) Sweep(ctx context.Context, id string) (settlement.Sweep, error) {
	return get(ctx, r, releases, id, nil)
}

func (r *reader) LiveSweeps(ctx context.Context, network string, limit int) ([]settlement.Sweep, error) {
	return scanRows(ctx, r, releasesLive, network, window[settlement.Sweep]{limit: limit})
}

func (tx *transaction) PutSettlements(ctx context.Context, s ...*settlement.Settlement) error {
	return putAll(ctx, tx, settlements, s)
}

func (tx *transaction) PutSweep(ctx context.Context, r *settlement.Sweep) error {
	return put(ctx, tx, releases, r)
}

// Carry returns a row of Version 0 when there is none yet.
func (tx *transaction) Carry(
	ctx context.Context,
	owner event.Owner,
	network string,
) (settlement.CarriedFee, error) {
	c, ok, err := try(ctx, &tx.reader, carryKind, join(ownerKey(owner), network))
	if !ok {
		c.Owner, c.Network = owner, network
	}

	return c, err
}

func (tx *transaction) PutCarry(ctx context.Context, c *settlement.CarriedFee) error {
	return put(ctx, tx, carryKind, c)
}

// Residue returns a row of Version 0 when there is none yet.
func (tx *transaction) Residue(
	ctx context.Context,
	network string,
	address chain.Address,
) (settlement.Residue, error) {
	r, ok, err := try(ctx, &tx.reader, residues, join(network, string(address)))
	if !ok {
		r.Network, r.Address = network, address
	}

	return r, err
}

func (tx *transaction) PutResidue(ctx context.Context, r *settlement.Residue) error {
	return put(ctx, tx, residues, r)
}

func (r *reader) Payout(ctx context.Context, owner event.Owner, id string) (payout.Payout, error) {
	return get(ctx, r, payouts, id, func(p *payout.Payout) bool { return p.Owner == owner })
}

func (r *reader) PayoutByID(ctx context.Context, id string) (payout.Payout, error) {
	return get(ctx, r, payouts, id, nil)
}

func (r *reader) Payouts(ctx context.Context, f payout.Filter) ([]payout.Payout, error) {
	match := func(p *payout.Payout) bool {
		return passes(f.Statuses, p.Status) && passes(f.Networks, p.Network) &&
			starts(f.Q, p.TxHash, string(p.Destination), p.ID) &&
			within(p.CreatedAt, f.CreatedAfter, f.CreatedBefore)
	}

	return scanRows(ctx, r, payoutsByOwner, ownerKey(f.Owner), page(f.After, f.Limit, match))
}

func (r *reader) PayoutsSince(ctx context.Context, owner event.Owner, t time.Time) (int, error) {
	found, err := scanStored(ctx, r, payoutsByAge, ownerKey(owner), window[payout.Payout]{
		downward: true,
		above:    moment(t),
		match:    func(p *payout.Payout) bool { return !p.CreatedAt.Before(t) },
	})

	return len(found), err
}

func (r *reader) Refund(ctx context.Context, owner event.Owner, id string) (payout.Refund, error) {
	return get(ctx, r, refunds, id, func(x *payout.Refund) bool { return x.Owner == owner })
}

func (r *reader) RefundByID(ctx context.Context, id string) (payout.Refund, error) {
	return get(ctx, r, refunds, id, nil)
}

func (r *reader) Refunds(ctx context.Context, f payout.RefundFilter) ([]payout.Refund, error) {
	match := func(x *payout.Refund) bool {
		return passes(f.Statuses, x.Status) && (f.InvoiceID == "" || x.InvoiceID == f.InvoiceID) &&
			(f.PaymentID == "" || x.PaymentID == f.PaymentID) &&
			within(x.CreatedAt, f.CreatedAfter, f.CreatedBefore)
	}

	return scanRows(ctx, r, refundsByOwner, ownerKey(f.Owner), page(f.After, f.Limit, match))
}

func (tx *transaction) PutPayout(ctx context.Context, p *payout.Payout) error {
	return put(ctx, tx, payouts, p)
}

func (tx *transaction) PutRefund(ctx context.Context, r *payout.Refund) error {
	return put(ctx, tx, refunds, r)
}
