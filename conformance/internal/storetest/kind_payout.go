package storetest

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

var settlementKinds = []recordKind{
	kindOf[settlement.Settlement]{
		kind:   "Settlement",
		setKey: func(s *settlement.Settlement, n int) { s.ID = recordID(n) },
		store:  single(store.Tx.PutSettlements),
		read: func(ctx context.Context, tx store.Tx, s *settlement.Settlement) (settlement.Settlement, error) {
			all, err := tx.SettlementsByID(ctx, []string{s.ID})
			return findRecord(all, err, func(settlement.Settlement) bool { return true })
		},
		versionOf: func(s *settlement.Settlement) *int64 { return &s.Version },
	},
	kindOf[settlement.Release]{
		kind:   "Release",
		setKey: func(r *settlement.Release, n int) { r.ID = recordID(n) },
		store:  store.Tx.PutRelease,
		read: func(ctx context.Context, tx store.Tx, r *settlement.Release) (settlement.Release, error) {
			return tx.Release(ctx, r.ID)
		},
		versionOf: func(r *settlement.Release) *int64 { return &r.Version },
	},
	kindOf[settlement.Carry]{
		kind: "Carry",
		setKey: func(c *settlement.Carry, n int) {
			c.Owner, c.Network = event.Owner{AccountID: "acc", Livemode: true}, recordID(n)
		},
		store: store.Tx.PutCarry,
		read: func(ctx context.Context, tx store.Tx, c *settlement.Carry) (settlement.Carry, error) {
			got, err := tx.Carry(ctx, c.Owner, c.Network)
			return orMissing(got, got.Version != 0, err)
		},
		versionOf: func(c *settlement.Carry) *int64 { return &c.Version },
	},
	kindOf[settlement.Residue]{
		kind:   "Residue",
		setKey: func(r *settlement.Residue, n int) { r.Network, r.Address = "net", chain.Address(recordID(n)) },
		store:  store.Tx.PutResidue,
		read: func(ctx context.Context, tx store.Tx, r *settlement.Residue) (settlement.Residue, error) {
			got, err := tx.Residue(ctx, r.Network, r.Address)
			return orMissing(got, got.Version != 0, err)
		},
		versionOf: func(r *settlement.Residue) *int64 { return &r.Version },
	},
}

var payoutKinds = []recordKind{
	kindOf[payout.Payout]{
		kind:   "Payout",
		setKey: func(p *payout.Payout, n int) { p.ID = recordID(n) },
		store:  store.Tx.PutPayout,
		read: func(ctx context.Context, tx store.Tx, p *payout.Payout) (payout.Payout, error) {
			return tx.PayoutByID(ctx, p.ID)
		},
		versionOf: func(p *payout.Payout) *int64 { return &p.Version },
	},
	kindOf[payout.Refund]{
		kind:   "Refund",
		setKey: func(r *payout.Refund, n int) { r.ID = recordID(n) },
		store:  store.Tx.PutRefund,
		read: func(ctx context.Context, tx store.Tx, r *payout.Refund) (payout.Refund, error) {
			return tx.RefundByID(ctx, r.ID)
		},
		versionOf: func(r *payout.Refund) *int64 { return &r.Version },
	},
}

var webhookKinds = []recordKind{
	kindOf[webhook.Endpoint]{
		kind:   "Endpoint",
		setKey: func(e *webhook.Endpoint, n int) { e.ID, e.Owner.AccountID = recordID(n), "acc" },
		store:  store.Tx.PutEndpoint,
		read: func(ctx context.Context, tx store.Tx, e *webhook.Endpoint) (webhook.Endpoint, error) {
			return tx.WebhookEndpoint(ctx, e.Owner, e.ID)
		},
		versionOf: func(e *webhook.Endpoint) *int64 { return &e.Version },
	},
	kindOf[event.Event]{
		kind: "Event",
		setKey: func(e *event.Event, n int) {
			// Subject and Previous are for reactions and rendering; neither is stored.
			e.ID, e.Subject, e.Previous = "evt_"+recordID(n), nil, nil
		},
		store: func(tx store.Tx, ctx context.Context, e *event.Event) error { return tx.PutEvents(ctx, *e) },
		read: func(ctx context.Context, tx store.Tx, e *event.Event) (event.Event, error) {
			return tx.Event(ctx, e.Owner, e.ID)
		},
	},
	kindOf[webhook.Delivery]{
		kind:   "Delivery",
		setKey: func(d *webhook.Delivery, n int) { d.ID, d.Owner.AccountID = recordID(n), "acc" },
		store:  single(store.Tx.PutDeliveries),
		read: func(ctx context.Context, tx store.Tx, d *webhook.Delivery) (webhook.Delivery, error) {
			return tx.Delivery(ctx, d.Owner, d.ID)
		},
		versionOf: func(d *webhook.Delivery) *int64 { return &d.Version },
	},
}
