package conformance_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

var errMutantDuplicate = fault.New(fault.Duplicate, "duplicate", "the record already exists")

// The transactions below embed the real one and take too little, or too much, as a unique key.
type (
	oneAsset     struct{ store.Tx }
	oneOutput    struct{ store.Tx }
	oneMode      struct{ store.Tx }
	oneTransfer  struct{ store.Tx }
	oneHashless  struct{ store.Tx }
	oneOrder     struct{ store.Tx }
	twiceIndexed struct{ store.Tx }
)

func (tx oneAsset) PutBalance(ctx context.Context, b *wallet.Balance) error {
	all, err := tx.BalancesOf(ctx, b.Network)
	if err != nil {
		return err
	}

	if slices.ContainsFunc(all, func(x wallet.Balance) bool { return x.Address == b.Address }) {
		return errMutantDuplicate
	}

	return tx.Tx.PutBalance(ctx, b)
}

func (tx oneOutput) PutCoin(ctx context.Context, c *wallet.Coin) error {
	all, err := tx.CoinsOf(ctx, c.Network, []string{c.Outpoint.TxHash})
	if err != nil {
		return err
	}

	if len(all) > 0 {
		return errMutantDuplicate
	}

	return tx.Tx.PutCoin(ctx, c)
}

func (tx oneMode) ClaimIdempotencyKey(
	ctx context.Context,
	r idempotency.Record,
	stale time.Time,
	wait time.Duration,
) error {
	key := r.Key
	key.Owner.Livemode = !key.Owner.Livemode

	if _, exists, err := tx.IdempotencyRecord(ctx, key); err != nil || exists {
		return errors.Join(err, errMutantDuplicate)
	}

	return tx.Tx.ClaimIdempotencyKey(ctx, r, stale, wait)
}

func (tx oneTransfer) PutPayments(ctx context.Context, payments ...*invoice.Payment) error {
	for _, p := range payments {
		all, err := tx.PaymentsByHash(ctx, p.Network, []string{p.TxHash})
		if err != nil {
			return err
		}

		if slices.ContainsFunc(all, func(x invoice.Payment) bool {
			return x.ID != p.ID && x.Address == p.Address && x.AssetID == p.AssetID
		}) {
			return errMutantDuplicate
		}
	}

	return tx.Tx.PutPayments(ctx, payments...)
}

func (tx oneHashless) PutPayments(ctx context.Context, payments ...*invoice.Payment) error {
	if slices.ContainsFunc(payments, func(p *invoice.Payment) bool { return p.TxHash == "" }) {
		return errMutantDuplicate
	}

	return tx.Tx.PutPayments(ctx, payments...)
}

func (tx oneOrder) PutInvoice(ctx context.Context, inv *invoice.Invoice) error {
	all, err := tx.Invoices(ctx, invoice.Filter{Owner: inv.Owner, OrderID: inv.OrderID})
	if err != nil {
		return err
	}

	if len(all) > 0 && all[0].ID != inv.ID {
		return errMutantDuplicate
	}

	return tx.Tx.PutInvoice(ctx, inv)
}

func (tx twiceIndexed) PutAccount(ctx context.Context, a *account.Account) error {
	err := tx.Tx.PutAccount(ctx, a)
	if _, missing := tx.Account(ctx, a.ID); errors.Is(err, fault.Duplicate) && missing != nil {
		return nil
	}

	return err
}

var uniqueMutants = map[string]storeMutant{
	"an address has one balance": {
		"Unique/Balance/asset",
		wrapTx(func(tx store.Tx) oneAsset { return oneAsset{tx} }),
	},
	"a transaction has one coin": {
		"Unique/Coin/output",
		wrapTx(func(tx store.Tx) oneOutput { return oneOutput{tx} }),
	},
	"modes share an idempotency key": {
		"Unique/IdempotencyRecord/mode",
		wrapTx(func(tx store.Tx) oneMode { return oneMode{tx} }),
	},
	"transfers have no index": {
		"Unique/Payment/index",
		wrapTx(func(tx store.Tx) oneTransfer { return oneTransfer{tx} }),
	},
	"only one payment has no hash": {
		"Unique/Payment/absence_of_a_hash",
		wrapTx(func(tx store.Tx) oneHashless { return oneHashless{tx} }),
	},
	"an order has one invoice": {
		"Unique/Invoice/id",
		wrapTx(func(tx store.Tx) oneOrder { return oneOrder{tx} }),
	},
	"accounts share an index": {
		"Unique/Account/index",
		wrapTx(func(tx store.Tx) twiceIndexed { return twiceIndexed{tx} }),
	},
}
