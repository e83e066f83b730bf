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
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
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
		setKey: func(acct *account.Account, n int) { acct.ID, acct.Index = recordID(n), uint32(n) },
		store:  store.Tx.PutAccount,
		read: func(ctx context.Context, tx store.Tx, acct *account.Account) (account.Account, error) {
			return tx.Account(ctx, acct.ID)
		},
		versionOf: func(acct *account.Account) *int64 { return &acct.Version },
	},
	kindOf[account.Key]{
		kind: "Key",
		setKey: func(key *account.Key, n int) {
			key.ID, key.Owner.AccountID = recordID(n), "acc"
			key.Hash = [32]byte{byte(n), byte(n >> 8), 7}
		},
		store: store.Tx.PutKey,
		read: func(ctx context.Context, tx store.Tx, k *account.Key) (account.Key, error) {
			all, err := tx.Keys(ctx, k.Owner.AccountID)
			return findRecord(all, err, func(x account.Key) bool { return x.ID == k.ID })
		},
		versionOf: func(key *account.Key) *int64 { return &key.Version },
	},
	kindOf[idempotency.Record]{
		kind: "IdempotencyRecord",
		setKey: func(record *idempotency.Record, n int) {
			record.Key = idempotency.Key{
				Owner: event.Owner{AccountID: "acc", Livemode: true},
				Key:   recordID(n),
			}
		},
		store: func(tx store.Tx, ctx context.Context, record *idempotency.Record) error {
			claim := *record

			claim.Status, claim.SealedBody = 0, nil
			if err := tx.ClaimIdempotencyKey(ctx, claim, time.Time{}, time.Second); err != nil {
				return err
			}

			return tx.PutIdempotencyAnswer(ctx, *record)
		},
		read: func(ctx context.Context, tx store.Tx, record *idempotency.Record) (idempotency.Record, error) {
			return orMissing(tx.IdempotencyRecord(ctx, record.Key))
		},
	},
}

var invoiceKinds = []recordKind{
	kindOf[invoice.Invoice]{
		kind:   "Invoice",
		setKey: func(inv *invoice.Invoice, n int) { inv.ID = recordID(n) },
		store:  store.Tx.PutInvoice,
		read: func(ctx context.Context, tx store.Tx, inv *invoice.Invoice) (invoice.Invoice, error) {
			return tx.InvoiceByID(ctx, inv.ID)
		},
		versionOf: func(inv *invoice.Invoice) *int64 { return &inv.Version },
	},
	kindOf[invoice.Payment]{
		kind:   "Payment",
		setKey: func(payment *invoice.Payment, n int) { payment.ID = recordID(n) },
		store:  single(store.Tx.PutPayments),
		read: func(ctx context.Context, tx store.Tx, payment *invoice.Payment) (invoice.Payment, error) {
			return tx.PaymentByID(ctx, payment.ID)
		},
		versionOf: func(payment *invoice.Payment) *int64 { return &payment.Version },
	},
	kindOf[invoice.Address]{
		kind: "Address",
		setKey: func(address *invoice.Address, n int) {
			address.Space = chain.Space{Family: "fam", Livemode: false}
			address.Address = chain.Address(recordID(n))
		},
		store: func(tx store.Tx, ctx context.Context, address *invoice.Address) error {
			return tx.PutAddress(ctx, *address)
		},
		read: func(ctx context.Context, tx store.Tx, address *invoice.Address) (invoice.Address, error) {
			all, err := tx.MatchAddresses(ctx, address.Space, []chain.Address{address.Address})
			return findRecord(all, err, func(invoice.Address) bool { return true })
		},
	},
	kindOf[invoice.Dust]{
		kind: "Dust",
		setKey: func(d *invoice.Dust, n int) {
			d.Network, d.Address, d.AssetID = "net", chain.Address(recordID(n)), "s"
		},
		store: store.Tx.PutDust,
		read: func(ctx context.Context, tx store.Tx, d *invoice.Dust) (invoice.Dust, error) {
			all, err := tx.DustOf(ctx, d.Network, []chain.Address{d.Address})
			return findRecord(all, err, func(x invoice.Dust) bool { return x.AssetID == d.AssetID })
		},
		versionOf: func(d *invoice.Dust) *int64 { return &d.Version },
	},
	kindOf[invoice.DustTransfer]{
		kind: "DustTransfer",
		setKey: func(d *invoice.DustTransfer, n int) {
			d.Network, d.TxHash, d.TxIndex, d.Address, d.AssetID = "net", recordID(n), 1, "a", "s"
		},
		store: func(tx store.Tx, ctx context.Context, d *invoice.DustTransfer) error {
			return tx.PutDustTransfer(ctx, *d)
		},
		read: func(ctx context.Context, tx store.Tx, d *invoice.DustTransfer) (invoice.DustTransfer, error) {
			all, err := tx.DustByHash(ctx, d.Network, []string{d.TxHash})

			return findRecord(
				all,
				err,
				func(x invoice.DustTransfer) bool { return invoicestate.DustKey(x) == invoicestate.DustKey(*d) },
			)
		},
	},
	kindOf[invoice.DepositAddress]{
		kind: "DepositAddress",
		setKey: func(deposit *invoice.DepositAddress, n int) {
			deposit.ID, deposit.Owner.AccountID = recordID(n), "acc"
		},
		store: store.Tx.PutDepositAddress,
		read: func(ctx context.Context, tx store.Tx, deposit *invoice.DepositAddress) (invoice.DepositAddress, error) {
			return tx.DepositAddress(ctx, deposit.Owner, deposit.ID)
		},
		versionOf: func(deposit *invoice.DepositAddress) *int64 { return &deposit.Version },
	},
}

var scanKinds = []recordKind{
	kindOf[scan.Cursor]{
		kind:   "Cursor",
		setKey: func(cursor *scan.Cursor, n int) { cursor.Network = recordID(n) },
		store:  store.Tx.PutCursor,
		read: func(ctx context.Context, tx store.Tx, cursor *scan.Cursor) (scan.Cursor, error) {
			return orMissing(tx.Cursor(ctx, cursor.Network))
		},
		versionOf: func(cursor *scan.Cursor) *int64 { return &cursor.Version },
	},
	kindOf[scan.Position]{
		kind:   "Position",
		setKey: func(p *scan.Position, n int) { p.Network, p.Address = "net", chain.Address(recordID(n)) },
		store:  store.Tx.PutPosition,
		read: func(ctx context.Context, tx store.Tx, p *scan.Position) (scan.Position, error) {
			all, err := tx.Positions(ctx, p.Network, []chain.Address{p.Address})
			return findRecord(all, err, func(x scan.Position) bool { return x.Address == p.Address })
		},
		versionOf: func(p *scan.Position) *int64 { return &p.Version },
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
		setKey: func(retry *scan.Retry, n int) { retry.ID, retry.Network = recordID(n), "net" },
		store:  store.Tx.PutRetry,
		read: func(ctx context.Context, tx store.Tx, r *scan.Retry) (scan.Retry, error) {
			all, err := tx.Retries(ctx, r.Network, epoch.AddDate(1, 0, 0), 1000)
			return findRecord(all, err, func(x scan.Retry) bool { return x.ID == r.ID })
		},
		versionOf: func(retry *scan.Retry) *int64 { return &retry.Version },
	},
	kindOf[lease.Lease]{
		kind:     "Lease",
		setKey:   func(l *lease.Lease, n int) { l.Name, l.Fence = recordID(n), max(l.Fence, 1) },
		replaces: true,
		store:    func(tx store.Tx, ctx context.Context, l *lease.Lease) error { return tx.PutLease(ctx, *l) },
		read: func(ctx context.Context, tx store.Tx, l *lease.Lease) (lease.Lease, error) {
			return orMissing(oneLease(ctx, tx, l.Name))
		},
	},
}

var walletKinds = []recordKind{
	kindOf[wallet.Transaction]{
		kind:   "Transaction",
		setKey: func(transaction *wallet.Transaction, n int) { transaction.ID = recordID(n) },
		store:  store.Tx.PutTransaction,
		read: func(ctx context.Context, tx store.Tx, transaction *wallet.Transaction) (wallet.Transaction, error) {
			return tx.Transaction(ctx, transaction.ID)
		},
		versionOf: func(transaction *wallet.Transaction) *int64 { return &transaction.Version },
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
		setKey: func(balance *wallet.Balance, n int) {
			balance.Network, balance.Address, balance.AssetID = "net", chain.Address(recordID(n)), "asset"
		},
		store: store.Tx.PutBalance,
		read: func(ctx context.Context, tx store.Tx, balance *wallet.Balance) (wallet.Balance, error) {
			return orMissing(tx.BalanceForUpdate(ctx, balance.Network, balance.Address, balance.AssetID))
		},
		versionOf: func(balance *wallet.Balance) *int64 { return &balance.Version },
	},
	kindOf[wallet.Coin]{
		kind: "Coin",
		setKey: func(coin *wallet.Coin, n int) {
			// A coin that was spent is in no list: the field has a test of its own.
			coin.SpentBy = ""
			coin.Network = "net"
			coin.Outpoint = chain.Outpoint{TxHash: recordID(n), Vout: 3}
			coin.Owner.Address = "wallet"
		},
		store: store.Tx.PutCoin,
		read: func(ctx context.Context, tx store.Tx, c *wallet.Coin) (wallet.Coin, error) {
			all, err := tx.Coins(ctx, c.Network, c.Owner.Address)
			return findRecord(all, err, func(x wallet.Coin) bool { return x.Outpoint == c.Outpoint })
		},
		versionOf: func(coin *wallet.Coin) *int64 { return &coin.Version },
	},
	kindOf[wallet.Outgoing]{
		kind:   "Outgoing",
		setKey: func(o *wallet.Outgoing, n int) { o.Network, o.Key = "net", recordID(n) },
		store:  store.Tx.PutOutgoing,
		read: func(ctx context.Context, tx store.Tx, o *wallet.Outgoing) (wallet.Outgoing, error) {
			all, err := tx.OutgoingByKey(ctx, o.Network, []string{o.Key})
			return findRecord(all, err, func(x wallet.Outgoing) bool { return x.Key == o.Key })
		},
		versionOf: func(o *wallet.Outgoing) *int64 { return &o.Version },
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
	kindOf[settlement.Sweep]{
		kind:   "Release",
		setKey: func(r *settlement.Sweep, n int) { r.ID = recordID(n) },
		store:  store.Tx.PutSweep,
		read: func(ctx context.Context, tx store.Tx, r *settlement.Sweep) (settlement.Sweep, error) {
			return tx.Sweep(ctx, r.ID)
		},
		versionOf: func(r *settlement.Sweep) *int64 { return &r.Version },
	},
	kindOf[settlement.CarriedFee]{
		kind: "Carry",
		setKey: func(c *settlement.CarriedFee, n int) {
			c.Owner, c.Network = event.Owner{AccountID: "acc", Livemode: true}, recordID(n)
		},
		store: store.Tx.PutCarry,
		read: func(ctx context.Context, tx store.Tx, c *settlement.CarriedFee) (settlement.CarriedFee, error) {
			return orMissing(tx.Carry(ctx, c.Owner, c.Network))
		},
		versionOf: func(c *settlement.CarriedFee) *int64 { return &c.Version },
	},
	kindOf[settlement.Residue]{
		kind:   "Residue",
		setKey: func(r *settlement.Residue, n int) { r.Network, r.Address = "net", chain.Address(recordID(n)) },
		store:  store.Tx.PutResidue,
		read: func(ctx context.Context, tx store.Tx, r *settlement.Residue) (settlement.Residue, error) {
			return orMissing(tx.Residue(ctx, r.Network, r.Address))
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
		setKey: func(refund *payout.Refund, n int) { refund.ID = recordID(n) },
		store:  store.Tx.PutRefund,
		read: func(ctx context.Context, tx store.Tx, refund *payout.Refund) (payout.Refund, error) {
			return tx.RefundByID(ctx, refund.ID)
		},
		versionOf: func(refund *payout.Refund) *int64 { return &refund.Version },
	},
}

var webhookKinds = []recordKind{
	kindOf[webhook.Endpoint]{
		kind: "Endpoint",
		setKey: func(endpoint *webhook.Endpoint, n int) {
			endpoint.ID, endpoint.Owner.AccountID = recordID(n), "acc"
		},
		store: store.Tx.PutEndpoint,
		read: func(ctx context.Context, tx store.Tx, endpoint *webhook.Endpoint) (webhook.Endpoint, error) {
			return tx.WebhookEndpoint(ctx, endpoint.Owner, endpoint.ID)
		},
		versionOf: func(endpoint *webhook.Endpoint) *int64 { return &endpoint.Version },
	},
	kindOf[event.Event]{
		kind: "Event",
		setKey: func(evt *event.Event, n int) {
			// Payload and Previous are for reactions and rendering; neither is stored.
			evt.ID, evt.Payload, evt.Previous = "evt_"+recordID(n), nil, nil
		},
		store: func(tx store.Tx, ctx context.Context, evt *event.Event) error { return tx.PutEvents(ctx, *evt) },
		read: func(ctx context.Context, tx store.Tx, evt *event.Event) (event.Event, error) {
			return tx.Event(ctx, evt.Owner, evt.ID)
		},
	},
	kindOf[webhook.Delivery]{
		kind: "Delivery",
		setKey: func(delivery *webhook.Delivery, n int) {
			delivery.ID, delivery.Owner.AccountID = recordID(n), "acc"
		},
		store: single(store.Tx.PutDeliveries),
		read: func(ctx context.Context, tx store.Tx, delivery *webhook.Delivery) (webhook.Delivery, error) {
			return tx.Delivery(ctx, delivery.Owner, delivery.ID)
		},
		versionOf: func(delivery *webhook.Delivery) *int64 { return &delivery.Version },
	},
}
