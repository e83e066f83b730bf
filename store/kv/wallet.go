package kv

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

var (
	transactions = newTable(
		30, "transaction",
		func(t *wallet.Transaction) key { return keyOf(t.ID) },
		func(t *wallet.Transaction) *int64 { return &t.Version },
	)
	transactionsByObject = transactions.ordered(
		1,
		func(t *wallet.Transaction) key { return keyOf(t.ObjectID) },
	)
	transactionsByNetwork = transactions.ordered(
		2,
		func(t *wallet.Transaction) key { return keyOf(t.Network) },
	)
	transactionsDue = transactions.ordered(3, func(t *wallet.Transaction) key {
		return when(!t.DueAt.IsZero(), t.Network)
	})
	transactionsLive = transactions.ordered(4, func(t *wallet.Transaction) key {
		return when(walletstate.Live(*t), t.Network, t.Order.From.Address)
	})
	topUpsLive = transactions.ordered(5, func(t *wallet.Transaction) key {
		return when(walletstate.Live(*t) && t.Kind == wallet.TopUp, t.Network)
	})

	attempts = newTable(31, "attempt", func(a *attempt) key { return keyOf(a.Network, a.Hash) }, nil)

	wallets = newTable(
		32, "wallet",
		func(w *wallet.Wallet) key { return keyOf(w.Network, w.Party.Address) },
		func(w *wallet.Wallet) *int64 { return &w.Version },
	)
	walletsFrozen = wallets.ordered(1, func(w *wallet.Wallet) key { return when(w.Frozen != "", w.Network) })

	balances = newTable(
		33, "balance",
		func(b *wallet.Balance) key { return keyOf(b.Network, b.Address, b.AssetID) },
		func(b *wallet.Balance) *int64 { return &b.Version },
	)
	balancesByOwner = balances.ordered(1, func(b *wallet.Balance) key {
		return keyOf(b.Owner, b.Network, b.AssetID)
	})
)

// attempt is the hash of a transaction that the engine signed.
type attempt struct {
	Network, Hash, TransactionID string
	Kind                         wallet.Kind
}

func (r *reader) Transaction(ctx context.Context, id string) (wallet.Transaction, error) {
	return get(ctx, r, transactions, id, nil)
}

func (r *reader) TransactionsByID(ctx context.Context, ids []string) ([]wallet.Transaction, error) {
	return several(ctx, r, transactions, transactions.byID(ids))
}

func (r *reader) TransactionsOf(ctx context.Context, objectID string) ([]wallet.Transaction, error) {
	return list(ctx, r, transactionsByObject, keyOf(objectID), window[wallet.Transaction]{})
}

func (r *reader) Transactions(
	ctx context.Context,
	network, after string,
	limit int,
) ([]wallet.Transaction, error) {
	return list(ctx, r, transactionsByNetwork, keyOf(network), page[wallet.Transaction](after, limit, nil))
}

func (r *reader) DueTransactions(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]wallet.Transaction, error) {
	isDue := func(t *wallet.Transaction) bool { return !t.DueAt.After(now) }

	return list(
		ctx, r, transactionsDue, keyOf(network),
		window[wallet.Transaction]{limit: limit, match: isDue},
	)
}

func (r *reader) DueNetworks(ctx context.Context) (networks []string, err error) {
	next := window[wallet.Transaction]{limit: 1}

	for {
		first, err := list(ctx, r, transactionsDue, nil, next)
		if err != nil || len(first) == 0 {
			return networks, err
		}

		networks = append(networks, first[0].Network)
		next.from = after(keyOf(first[0].Network))
	}
}

func (r *reader) LiveTransactions(
	ctx context.Context,
	network string,
	from chain.Address,
) ([]wallet.Transaction, error) {
	return list(ctx, r, transactionsLive, keyOf(network, from), window[wallet.Transaction]{})
}

func (r *reader) LiveTopUps(ctx context.Context, network string) ([]wallet.Transaction, error) {
	return list(ctx, r, topUpsLive, keyOf(network), window[wallet.Transaction]{})
}

func (r *reader) OwnTransactions(
	ctx context.Context,
	network string,
	hashes []string,
) (map[string]wallet.OwnTransaction, error) {
	found, err := several(ctx, r, attempts, placesOf(attempts, network, hashes))
	if err != nil {
		return nil, err
	}

	own := make(map[string]wallet.OwnTransaction, len(found))
	for _, a := range found {
		own[a.Hash] = wallet.OwnTransaction{ID: a.TransactionID, Kind: a.Kind}
	}

	return own, nil
}

func (r *reader) Wallet(
	ctx context.Context,
	network string,
	address chain.Address,
) (wallet.Wallet, bool, error) {
	return try(ctx, r, wallets, wallets.at(network, address))
}

func (r *reader) FrozenWallets(ctx context.Context, network string, limit int) ([]wallet.Wallet, error) {
	return list(ctx, r, walletsFrozen, keyOf(network), window[wallet.Wallet]{limit: limit})
}

func (r *reader) Balance(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) (wallet.Balance, bool, error) {
	return try(ctx, r, balances, balances.at(network, address, assetID))
}

func (r *reader) Balances(ctx context.Context, owner event.Owner) ([]wallet.Balance, error) {
	return list(ctx, r, balancesByOwner, keyOf(owner), window[wallet.Balance]{})
}

func (r *reader) BalancesOf(ctx context.Context, network string) ([]wallet.Balance, error) {
	return list(ctx, r, balances.primary(), keyOf(network), window[wallet.Balance]{})
}

func (tx *transaction) PutTransaction(ctx context.Context, t *wallet.Transaction) error {
	return put(ctx, tx, transactions, t)
}

func (tx *transaction) PutAttemptHash(
	ctx context.Context,
	network, hash, transactionID string,
	kind wallet.Kind,
) error {
	return add(ctx, tx, attempts, &attempt{
		Network:       network,
		Hash:          hash,
		TransactionID: transactionID,
		Kind:          kind,
	})
}

func (tx *transaction) PutWallet(ctx context.Context, w *wallet.Wallet) error {
	return put(ctx, tx, wallets, w)
}

func (tx *transaction) BalanceForUpdate(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) (wallet.Balance, bool, error) {
	return tx.Balance(ctx, network, address, assetID)
}

func (tx *transaction) PutBalance(ctx context.Context, b *wallet.Balance) error {
	return put(ctx, tx, balances, b)
}
