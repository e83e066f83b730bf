package storetest

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
)

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
