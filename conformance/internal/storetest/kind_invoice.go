package storetest

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
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
