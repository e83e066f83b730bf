package memory

// This file keeps what follows networks and what is sent: cursors, the outbox, wallets, balances and coins.

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

var (
	cursors = newKind(
		"cursor", func(c *scan.Cursor) string { return c.Network },
		func(c *scan.Cursor) *int64 { return &c.Version },
	)

	ranges = newKind(
		"back-fill range", func(r *scan.Range) string { return r.ID },
		func(r *scan.Range) *int64 { return &r.Version },
	)
	rangesByNetwork = ranges.ordered(
		func(r *scan.Range) (string, string, bool) { return r.Network, r.ID, true },
	)

	retries = newKind(
		"retry", func(r *scan.Retry) string { return r.ID },
		func(r *scan.Retry) *int64 { return &r.Version },
	)
	retriesByNetwork = retries.ordered(
		func(r *scan.Retry) (string, string, bool) { return r.Network, r.ID, true },
	)

	transactions = newKind(
		"transaction", func(t *wallet.Transaction) string { return t.ID },
		func(t *wallet.Transaction) *int64 { return &t.Version },
	)
	transactionsByObject = transactions.ordered(
		func(t *wallet.Transaction) (string, string, bool) { return t.ObjectID, t.ID, true },
	)
	transactionsAt = transactions.ordered(
		func(t *wallet.Transaction) (string, string, bool) { return t.Network, t.ID, true },
	)
	transactionsDue = transactions.ordered(
		func(t *wallet.Transaction) (string, string, bool) { return t.Network, t.ID, !t.DueAt.IsZero() },
	)
	transactionsByWallet = transactions.ordered(func(t *wallet.Transaction) (string, string, bool) {
		return join(t.Network, string(t.Order.From.Address)), t.ID, t.Live()
	})

	attempts = newKind("attempt", func(a *attempt) string { return join(a.network, a.hash) }, nil)

	wallets = newKind(
		"wallet", func(w *wallet.Wallet) string { return join(w.Network, string(w.Party.Address)) },
		func(w *wallet.Wallet) *int64 { return &w.Version },
	)

	walletsFrozen = wallets.ordered(func(w *wallet.Wallet) (string, string, bool) {
		return w.Network, string(w.Party.Address), w.Frozen != ""
	})

	balances = newKind(
		"balance",
		func(b *wallet.Balance) string { return join(b.Network, string(b.Address), b.AssetID) },
		func(b *wallet.Balance) *int64 { return &b.Version },
	)
	balancesByOwner = balances.ordered(func(b *wallet.Balance) (string, string, bool) {
		return ownerKey(b.Owner), join(b.Network, b.AssetID, string(b.Address)), true
	})
	balancesByNetwork = balances.ordered(func(b *wallet.Balance) (string, string, bool) {
		return b.Network, join(string(b.Address), b.AssetID), true
	})

	coins = newKind("coin", func(c *wallet.Coin) string {
		return join(c.Network, c.Outpoint.TxHash, strconv.FormatUint(uint64(c.Outpoint.Vout), 10))
	}, func(c *wallet.Coin) *int64 { return &c.Version })
	coinsByAddress = coins.ordered(func(c *wallet.Coin) (string, string, bool) {
		bucket := join(c.Network, string(c.Owner.Address))
		rank := join(c.Outpoint.TxHash, number(uint64(c.Outpoint.Vout)))

		return bucket, rank, c.SpentBy == ""
	})
	coinsByTransaction = coins.ordered(func(c *wallet.Coin) (string, string, bool) {
		return join(c.Network, c.Outpoint.TxHash), number(uint64(c.Outpoint.Vout)), true
	})
	coinsByHeight = coins.ordered(func(c *wallet.Coin) (string, string, bool) {
		return c.Network, join(
			number(max(c.Height, c.SpentAt)), c.Outpoint.TxHash, number(uint64(c.Outpoint.Vout)),
		), true
	})
	outgoing = newKind(
		"outgoing transaction", func(o *wallet.Outgoing) string { return join(o.Network, o.Key) },
		func(o *wallet.Outgoing) *int64 { return &o.Version },
	)
	outgoingByHash = outgoing.ordered(func(o *wallet.Outgoing) (string, string, bool) {
		return join(o.Network, o.TxHash), o.Key, true
	})
	outgoingByAddress = outgoing.ordered(func(o *wallet.Outgoing) (string, string, bool) {
		return join(o.Network, string(o.Address)), join(number(o.Block.Height), o.Key), true
	})
	outgoingByHeight = outgoing.ordered(func(o *wallet.Outgoing) (string, string, bool) {
		return o.Network, join(number(o.Block.Height), o.Key), true
	})
	outgoingUnrecorded = outgoing.ordered(func(o *wallet.Outgoing) (string, string, bool) {
		return o.Network, join(number(o.Block.Height), o.Key), o.Unrecorded
	})

	coinsWaiting = coins.ordered(func(c *wallet.Coin) (string, string, bool) {
		return c.Network, join(c.Outpoint.TxHash, number(uint64(c.Outpoint.Vout))), c.Height == 0
	})
)

// attempt is the hash of a transaction that the engine signed.
type attempt struct {
	network, hash, transactionID string
	kind                         wallet.Kind
}

func (r *reader) Cursor(ctx context.Context, network string) (scan.Cursor, bool, error) {
	return try(ctx, r, cursors, network)
}

func (r *reader) Ranges(ctx context.Context, network string, limit int) ([]scan.Range, error) {
	return scanRows(ctx, r, rangesByNetwork, network, window[scan.Range]{limit: limit})
}

func (r *reader) Retries(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]scan.Retry, error) {
	isDue := func(x *scan.Retry) bool { return !x.DueAt.After(now) }

	return scanRows(ctx, r, retriesByNetwork, network, window[scan.Retry]{limit: limit, match: isDue})
}

func (tx *transaction) PutCursor(ctx context.Context, c *scan.Cursor) error {
	return put(ctx, tx, cursors, c)
}

func (tx *transaction) PutRange(ctx context.Context, r *scan.Range) error {
	return put(ctx, tx, ranges, r)
}

func (tx *transaction) DeleteRange(ctx context.Context, id string) error {
	return remove(ctx, tx, ranges, id)
}

func (tx *transaction) PutRetry(ctx context.Context, r *scan.Retry) error {
	return put(ctx, tx, retries, r)
}

func (tx *transaction) DeleteRetry(ctx context.Context, id string) error {
	return remove(ctx, tx, retries, id)
}

func (r *reader) Transaction(ctx context.Context, id string) (wallet.Transaction, error) {
	return get(ctx, r, transactions, id, nil)
}

func (r *reader) TransactionsByID(ctx context.Context, ids []string) ([]wallet.Transaction, error) {
	return several(ctx, r, transactions, ids)
}

func (r *reader) TransactionsOf(ctx context.Context, objectID string) ([]wallet.Transaction, error) {
	return scanRows(ctx, r, transactionsByObject, objectID, window[wallet.Transaction]{})
}

func (r *reader) Transactions(
	ctx context.Context,
	network, after string,
	limit int,
) ([]wallet.Transaction, error) {
	return scanRows(ctx, r, transactionsAt, network, page[wallet.Transaction](after, limit, nil))
}

func (r *reader) DueTransactions(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]wallet.Transaction, error) {
	isDue := func(t *wallet.Transaction) bool { return !t.DueAt.After(now) }

	return scanRows(ctx, r, transactionsDue, network, window[wallet.Transaction]{limit: limit, match: isDue})
}

func (r *reader) LiveTransactions(
	ctx context.Context,
	network string,
	from chain.Address,
) ([]wallet.Transaction, error) {
	return scanRows(ctx, r, transactionsByWallet, join(network, string(from)), window[wallet.Transaction]{})
}

func (r *reader) OwnTransactions(
	ctx context.Context,
	network string,
	hashes []string,
) (map[string]wallet.Kind, error) {
	own := map[string]wallet.Kind{}

	for _, hash := range hashes {
		a, err := lookup(ctx, r, attempts, join(network, hash))
		if err != nil {
			return nil, err
		}

		if a != nil {
			own[hash] = a.kind
		}
	}

	return own, nil
}

func (r *reader) Wallet(
	ctx context.Context,
	network string,
	address chain.Address,
) (wallet.Wallet, bool, error) {
	return try(ctx, r, wallets, join(network, string(address)))
}

func (r *reader) FrozenWallets(ctx context.Context, network string, limit int) ([]wallet.Wallet, error) {
	return scanRows(ctx, r, walletsFrozen, network, window[wallet.Wallet]{limit: limit})
}

func (r *reader) Balance(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) (wallet.Balance, bool, error) {
	return try(ctx, r, balances, join(network, string(address), assetID))
}

func (r *reader) Balances(ctx context.Context, owner event.Owner) ([]wallet.Balance, error) {
	return scanRows(ctx, r, balancesByOwner, ownerKey(owner), window[wallet.Balance]{})
}

func (r *reader) BalancesOf(ctx context.Context, network string) ([]wallet.Balance, error) {
	return scanRows(ctx, r, balancesByNetwork, network, window[wallet.Balance]{})
}

func (r *reader) Coins(ctx context.Context, network string, address chain.Address) ([]wallet.Coin, error) {
	return scanRows(ctx, r, coinsByAddress, join(network, string(address)), window[wallet.Coin]{})
}

func (r *reader) CoinsOf(ctx context.Context, network string, hashes []string) ([]wallet.Coin, error) {
	var out []wallet.Coin

	for _, hash := range hashes {
		made, err := scanRows(ctx, r, coinsByTransaction, join(network, hash), window[wallet.Coin]{})
		if err != nil {
			return nil, err
		}

		out = append(out, made...)
	}

	return out, nil
}

func (r *reader) UnconfirmedCoins(ctx context.Context, network string) ([]wallet.Coin, error) {
	return scanRows(ctx, r, coinsWaiting, network, window[wallet.Coin]{})
}

func (r *reader) CoinsAbove(ctx context.Context, network string, height uint64) ([]wallet.Coin, error) {
	return scanRows(
		ctx, r, coinsByHeight, network,
		window[wallet.Coin]{downward: true, above: number(height + 1)},
	)
}

func (r *reader) OutgoingByKey(
	ctx context.Context,
	network string,
	keys []string,
) ([]wallet.Outgoing, error) {
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i] = join(network, key)
	}

	return several(ctx, r, outgoing, ids)
}

func (r *reader) OutgoingByHash(
	ctx context.Context,
	network string,
	hashes []string,
) ([]wallet.Outgoing, error) {
	var out []wallet.Outgoing

	for _, hash := range slices.Compact(slices.Sorted(slices.Values(hashes))) {
		found, err := scanRows(ctx, r, outgoingByHash, join(network, hash), window[wallet.Outgoing]{})
		if err != nil {
			return nil, err
		}

		out = append(out, found...)
	}

	return out, nil
}

func (r *reader) OutgoingOf(
	ctx context.Context,
	network string,
	address chain.Address,
	from uint64,
	limit int,
) ([]wallet.Outgoing, error) {
	atOrAbove := func(o *wallet.Outgoing) bool { return o.Block.Height >= from }

	return scanRows(
		ctx, r, outgoingByAddress, join(network, string(address)),
		window[wallet.Outgoing]{limit: limit, match: atOrAbove},
	)
}

func (r *reader) OutgoingAbove(
	ctx context.Context,
	network string,
	height uint64,
) ([]wallet.Outgoing, error) {
	return scanRows(
		ctx, r, outgoingByHeight, network,
		window[wallet.Outgoing]{downward: true, above: number(height + 1)},
	)
}

func (r *reader) UnrecordedOutgoing(
	ctx context.Context,
	network string,
	address chain.Address,
	since time.Time,
) ([]wallet.Outgoing, error) {
	wanted := func(o *wallet.Outgoing) bool {
		return (address == "" || o.Address == address) &&
			(o.Acknowledged == "" || !o.Block.Time.Before(since))
	}

	return scanRows(ctx, r, outgoingUnrecorded, network, window[wallet.Outgoing]{match: wanted})
}

func (tx *transaction) PutTransaction(ctx context.Context, t *wallet.Transaction) error {
	return put(ctx, tx, transactions, t)
}

func (tx *transaction) PutAttemptHash(
	ctx context.Context,
	network, hash, transactionID string,
	kind wallet.Kind,
) error {
	return add(ctx, tx, attempts, &attempt{network, hash, transactionID, kind})
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

func (tx *transaction) PutCoin(ctx context.Context, c *wallet.Coin) error {
	return put(ctx, tx, coins, c)
}

func (tx *transaction) DeleteCoin(ctx context.Context, network string, o chain.Outpoint) error {
	return remove(ctx, tx, coins, join(network, o.TxHash, strconv.FormatUint(uint64(o.Vout), 10)))
}

func (tx *transaction) PutOutgoing(ctx context.Context, o *wallet.Outgoing) error {
	return put(ctx, tx, outgoing, o)
}

func (tx *transaction) DeleteOutgoing(ctx context.Context, network, key string) error {
	return remove(ctx, tx, outgoing, join(network, key))
}
