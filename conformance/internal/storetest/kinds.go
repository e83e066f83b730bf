package storetest

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
	"github.com/seed-8ee7f392/payments/webhook"
)

var accountKinds = []recordKind{
	kindOf[account.Account]{
		kind:   "Account",
		setKey: func(a *account.Account, n int) { a.ID, a.Index = recordID(n), uint32(n) },
		store:  store.Tx.PutAccount,
		read: func(ctx context.Context, tx store.Tx, a *account.Account) (account.Account, error) {
			return tx.Account(ctx, a.ID)
		},
		versionOf: func(a *account.Account) *int64 { return &a.Version },
	},
	kindOf[account.Key]{
		kind: "Key",
		setKey: func(k *account.Key, n int) {
			k.ID, k.Owner.AccountID = recordID(n), "acc"
			k.Hash = [32]byte{byte(n), byte(n >> 8), 7}
		},
		store: store.Tx.PutKey,
		read: func(ctx context.Context, tx store.Tx, k *account.Key) (account.Key, error) {
			all, err := tx.Keys(ctx, k.Owner.AccountID)
			return findRecord(all, err, func(x account.Key) bool { return x.ID == k.ID })
		},
		versionOf: func(k *account.Key) *int64 { return &k.Version },
	},
	kindOf[idempotency.Record]{
		kind: "IdempotencyRecord",
		setKey: func(r *idempotency.Record, n int) {
			r.Key = idempotency.Key{Owner: event.Owner{AccountID: "acc", Livemode: true}, Key: recordID(n)}
		},
		store: func(tx store.Tx, ctx context.Context, r *idempotency.Record) error {
			claim := *r

			claim.Status, claim.SealedBody = 0, nil
			if err := tx.ClaimIdempotencyKey(ctx, claim, time.Time{}, time.Second); err != nil {
				return err
			}

			return tx.PutIdempotencyAnswer(ctx, *r)
		},
		read: func(ctx context.Context, tx store.Tx, r *idempotency.Record) (idempotency.Record, error) {
			return orMissing(tx.IdempotencyRecord(ctx, r.Key))
		},
	},
}

var invoiceKinds = []recordKind{
	kindOf[invoice.Invoice]{
		kind:   "Invoice",
		setKey: func(i *invoice.Invoice, n int) { i.ID = recordID(n) },
		store:  store.Tx.PutInvoice,
		read: func(ctx context.Context, tx store.Tx, i *invoice.Invoice) (invoice.Invoice, error) {
			return tx.InvoiceByID(ctx, i.ID)
		},
		versionOf: func(i *invoice.Invoice) *int64 { return &i.Version },
	},
	kindOf[invoice.Payment]{
		kind:   "Payment",
		setKey: func(p *invoice.Payment, n int) { p.ID = recordID(n) },
		store:  single(store.Tx.PutPayments),
		read: func(ctx context.Context, tx store.Tx, p *invoice.Payment) (invoice.Payment, error) {
			return tx.PaymentByID(ctx, p.ID)
		},
		versionOf: func(p *invoice.Payment) *int64 { return &p.Version },
	},
	kindOf[invoice.Address]{
		kind: "Address",
		setKey: func(a *invoice.Address, n int) {
			a.Space, a.Address = chain.Space{Family: "fam", Livemode: false}, chain.Address(recordID(n))
		},
		store: func(tx store.Tx, ctx context.Context, a *invoice.Address) error { return tx.PutAddress(ctx, *a) },
		read: func(ctx context.Context, tx store.Tx, a *invoice.Address) (invoice.Address, error) {
			all, err := tx.MatchAddresses(ctx, a.Space, []chain.Address{a.Address})
			return findRecord(all, err, func(invoice.Address) bool { return true })
		},
	},
	kindOf[invoice.DepositAddress]{
		kind:   "DepositAddress",
		setKey: func(d *invoice.DepositAddress, n int) { d.ID, d.Owner.AccountID = recordID(n), "acc" },
		store:  store.Tx.PutDepositAddress,
		read: func(ctx context.Context, tx store.Tx, d *invoice.DepositAddress) (invoice.DepositAddress, error) {
			return tx.DepositAddress(ctx, d.Owner, d.ID)
		},
		versionOf: func(d *invoice.DepositAddress) *int64 { return &d.Version },
	},
}

var scanKinds = []recordKind{
	kindOf[scan.Cursor]{
		kind:   "Cursor",
		setKey: func(c *scan.Cursor, n int) { c.Network = recordID(n) },
		store:  store.Tx.PutCursor,
		read: func(ctx context.Context, tx store.Tx, c *scan.Cursor) (scan.Cursor, error) {
			return orMissing(tx.Cursor(ctx, c.Network))
		},
		versionOf: func(c *scan.Cursor) *int64 { return &c.Version },
	},
	kindOf[scan.Range]{
		kind:   "Range",
		setKey: func(r *scan.Range, n int) { r.ID, r.Network = recordID(n), "net" },
		store:  store.Tx.PutRange,
		read: func(ctx context.Context, tx store.Tx, r *scan.Range) (scan.Range, error) {
			all, err := tx.Ranges(ctx, r.Network, 1000)
			return findRecord(all, err, func(x scan.Range) bool { return x.ID == r.ID })
		},
		versionOf: func(r *scan.Range) *int64 { return &r.Version },
	},
	kindOf[scan.Retry]{
		kind:   "Retry",
		setKey: func(r *scan.Retry, n int) { r.ID, r.Network = recordID(n), "net" },
		store:  store.Tx.PutRetry,
		read: func(ctx context.Context, tx store.Tx, r *scan.Retry) (scan.Retry, error) {
			all, err := tx.Retries(ctx, r.Network, epoch.AddDate(1, 0, 0), 1000)
			return findRecord(all, err, func(x scan.Retry) bool { return x.ID == r.ID })
		},
		versionOf: func(r *scan.Retry) *int64 { return &r.Version },
	},
	kindOf[lease.Lease]{
		kind:     "Lease",
		setKey:   func(l *lease.Lease, n int) { l.Name, l.Fence = recordID(n), max(l.Fence, 1) },
		replaces: true,
		store:    func(tx store.Tx, ctx context.Context, l *lease.Lease) error { return tx.PutLease(ctx, *l) },
		read: func(ctx context.Context, tx store.Tx, l *lease.Lease) (lease.Lease, error) {
			return orMissing(tx.Lease(ctx, l.Name))
		},
	},
}

var walletKinds = []recordKind{
	kindOf[wallet.Transaction]{
		kind:   "Transaction",
		setKey: func(x *wallet.Transaction, n int) { x.ID = recordID(n) },
		store:  store.Tx.PutTransaction,
		read: func(ctx context.Context, tx store.Tx, x *wallet.Transaction) (wallet.Transaction, error) {
			return tx.Transaction(ctx, x.ID)
		},
		versionOf: func(x *wallet.Transaction) *int64 { return &x.Version },
	},
	kindOf[wallet.Wallet]{
		kind:   "Wallet",
		setKey: func(w *wallet.Wallet, n int) { w.Network, w.Party.Address = "net", chain.Address(recordID(n)) },
		store:  store.Tx.PutWallet,
		read: func(ctx context.Context, tx store.Tx, w *wallet.Wallet) (wallet.Wallet, error) {
			return orMissing(tx.Wallet(ctx, w.Network, w.Party.Address))
		},
		versionOf: func(w *wallet.Wallet) *int64 { return &w.Version },
	},
	kindOf[wallet.Balance]{
		kind: "Balance",
		setKey: func(b *wallet.Balance, n int) {
			b.Network, b.Address, b.AssetID = "net", chain.Address(recordID(n)), "asset"
		},
		store: store.Tx.PutBalance,
		read: func(ctx context.Context, tx store.Tx, b *wallet.Balance) (wallet.Balance, error) {
			return orMissing(tx.BalanceForUpdate(ctx, b.Network, b.Address, b.AssetID))
		},
		versionOf: func(b *wallet.Balance) *int64 { return &b.Version },
	},
	kindOf[wallet.Coin]{
		kind: "Coin",
		setKey: func(c *wallet.Coin, n int) {
			// A coin that was spent is in no list: the field has a test of its own.
			c.SpentBy = ""
			c.Network = "net"
			c.Outpoint = chain.Outpoint{TxHash: recordID(n), Vout: 3}
			c.Owner.Address = "wallet"
		},
		store: store.Tx.PutCoin,
		read: func(ctx context.Context, tx store.Tx, c *wallet.Coin) (wallet.Coin, error) {
			all, err := tx.Coins(ctx, c.Network, c.Owner.Address)
			return findRecord(all, err, func(x wallet.Coin) bool { return x.Outpoint == c.Outpoint })
		},
		versionOf: func(c *wallet.Coin) *int64 { return &c.Version },
	},
}

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
