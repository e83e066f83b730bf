package memory

// This file keeps what follows networks and what is sent: cursors, the outbox, wallets, balances and coins.

import (
	"context"
	"strconv"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/send"
	"github.com/seed-8ee7f392/payments/chain/watch"
	"github.com/seed-8ee7f392/payments/event"
)

var (
	cursors = newKind(
		"cursor", func(c *watch.Cursor) string { return c.Network },
		func(c *watch.Cursor) *int64 { return &c.Version },
	)

	ranges = newKind(
		"back-fill range", func(r *watch.Range) string { return r.ID },
		func(r *watch.Range) *int64 { return &r.Version },
	)
	rangesByNetwork = ranges.ordered(
		func(r *watch.Range) (string, string, bool) { return r.Network, r.ID, true },
	)

	retries = newKind(
		"retry", func(r *watch.Retry) string { return r.ID },
		func(r *watch.Retry) *int64 { return &r.Version },
	)
	retriesByNetwork = retries.ordered(
		func(r *watch.Retry) (string, string, bool) { return r.Network, r.ID, true },
	)

	transactions = newKind(
		"transaction", func(t *send.Transaction) string { return t.ID },
		func(t *send.Transaction) *int64 { return &t.Version },
	)
	transactionsByObject = transactions.ordered(
		func(t *send.Transaction) (string, string, bool) { return t.ObjectID, t.ID, true },
	)
	transactionsAt = transactions.ordered(
		func(t *send.Transaction) (string, string, bool) { return t.Network, t.ID, true },
	)
	transactionsDue = transactions.ordered(
		func(t *send.Transaction) (string, string, bool) { return t.Network, t.ID, !t.DueAt.IsZero() },
	)
	transactionsByWallet = transactions.ordered(func(t *send.Transaction) (string, string, bool) {
		return join(t.Network, string(t.Order.From.Address)), t.ID, t.Live()
	})

	attempts = newKind("attempt", func(a *attempt) string { return join(a.network, a.hash) }, nil)

	wallets = newKind(
		"wallet", func(w *send.Wallet) string { return join(w.Network, string(w.Party.Address)) },
		func(w *send.Wallet) *int64 { return &w.Version },
	)

	balances = newKind(
		"balance",
		func(b *send.Balance) string { return join(b.Network, string(b.Address), b.AssetID) },
		func(b *send.Balance) *int64 { return &b.Version },
	)
	balancesByOwner = balances.ordered(func(b *send.Balance) (string, string, bool) {
		return ownerKey(b.Owner), join(b.Network, b.AssetID, string(b.Address)), true
	})
	balancesByNetwork = balances.ordered(func(b *send.Balance) (string, string, bool) {
		return b.Network, join(string(b.Address), b.AssetID), true
	})

	coins = newKind("coin", func(c *send.Coin) string {
		return join(c.Network, c.Outpoint.TxHash, strconv.FormatUint(uint64(c.Outpoint.Vout), 10))
	}, func(c *send.Coin) *int64 { return &c.Version })
	coinsByAddress = coins.ordered(func(c *send.Coin) (string, string, bool) {
		return join(
				c.Network, string(c.Owner.Address),
			), join(
				c.Outpoint.TxHash, number(uint64(c.Outpoint.Vout)),
			), c.SpentBy == ""
	})
	coinsByTransaction = coins.ordered(func(c *send.Coin) (string, string, bool) {
		return join(c.Network, c.Outpoint.TxHash), number(uint64(c.Outpoint.Vout)), true
	})
	coinsByHeight = coins.ordered(func(c *send.Coin) (string, string, bool) {
		return c.Network, join(
			number(max(c.Height, c.SpentAt)), c.Outpoint.TxHash, number(uint64(c.Outpoint.Vout)),
		), true
	})
	coinsWaiting = coins.ordered(func(c *send.Coin) (string, string, bool) {
		return c.Network, join(c.Outpoint.TxHash, number(uint64(c.Outpoint.Vout))), c.Height == 0
	})
)

// attempt is the hash of signed bytes of ours.
type attempt struct {
	network, hash, transactionID string
	kind                         send.Kind
}

func (r *reader) Cursor(ctx context.Context, network string) (watch.Cursor, bool, error) {
	return try(ctx, r, cursors, network)
}

func (r *reader) Ranges(ctx context.Context, network string, limit int) ([]watch.Range, error) {
	return scan(ctx, r, rangesByNetwork, network, window[watch.Range]{limit: limit})
}

func (r *reader) Retries(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]watch.Retry, error) {
	return scan(ctx, r, retriesByNetwork, network, window[watch.Retry]{
		limit: limit,
		match: func(x *watch.Retry) bool { return !x.DueAt.After(now) },
	})
}

func (tx *transaction) PutCursor(ctx context.Context, c *watch.Cursor) error {
	return put(ctx, tx, cursors, c)
}

func (tx *transaction) PutRange(ctx context.Context, r *watch.Range) error {
	return put(ctx, tx, ranges, r)
}

func (tx *transaction) DeleteRange(ctx context.Context, id string) error {
	return remove(ctx, tx, ranges, id)
}

func (tx *transaction) PutRetry(ctx context.Context, r *watch.Retry) error {
	return put(ctx, tx, retries, r)
}

func (tx *transaction) DeleteRetry(ctx context.Context, id string) error {
	return remove(ctx, tx, retries, id)
}

func (r *reader) Transaction(ctx context.Context, id string) (send.Transaction, error) {
	return get(ctx, r, transactions, id, nil)
}

func (r *reader) TransactionsByID(ctx context.Context, ids []string) ([]send.Transaction, error) {
	return several(ctx, r, transactions, ids)
}

func (r *reader) TransactionsOf(ctx context.Context, objectID string) ([]send.Transaction, error) {
	return scan(ctx, r, transactionsByObject, objectID, window[send.Transaction]{})
}

func (r *reader) Transactions(
	ctx context.Context,
	network, after string,
	limit int,
) ([]send.Transaction, error) {
	return scan(ctx, r, transactionsAt, network, page[send.Transaction](after, limit, nil))
}

func (r *reader) DueTransactions(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]send.Transaction, error) {
	return scan(ctx, r, transactionsDue, network, window[send.Transaction]{
		limit: limit,
		match: func(t *send.Transaction) bool { return !t.DueAt.After(now) },
	})
}

func (r *reader) LiveTransactions(
	ctx context.Context,
	network string,
	from chain.Address,
) ([]send.Transaction, error) {
	return scan(ctx, r, transactionsByWallet, join(network, string(from)), window[send.Transaction]{})
}

func (r *reader) OwnTransactions(
	ctx context.Context,
	network string,
	hashes []string,
) (map[string]send.Kind, error) {
	own := map[string]send.Kind{}

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
) (send.Wallet, bool, error) {
	return try(ctx, r, wallets, join(network, string(address)))
}

func (r *reader) Balance(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) (send.Balance, bool, error) {
	return try(ctx, r, balances, join(network, string(address), assetID))
}

func (r *reader) Balances(ctx context.Context, owner event.Owner) ([]send.Balance, error) {
	return scan(ctx, r, balancesByOwner, ownerKey(owner), window[send.Balance]{})
}

func (r *reader) BalancesOf(ctx context.Context, network string) ([]send.Balance, error) {
	return scan(ctx, r, balancesByNetwork, network, window[send.Balance]{})
}

func (r *reader) Coins(ctx context.Context, network string, address chain.Address) ([]send.Coin, error) {
	return scan(ctx, r, coinsByAddress, join(network, string(address)), window[send.Coin]{})
}

func (r *reader) CoinsOf(ctx context.Context, network string, hashes []string) ([]send.Coin, error) {
	var out []send.Coin

	for _, hash := range hashes {
		made, err := scan(ctx, r, coinsByTransaction, join(network, hash), window[send.Coin]{})
		if err != nil {
			return nil, err
		}

		out = append(out, made...)
	}

	return out, nil
}

func (r *reader) WaitingCoins(ctx context.Context, network string) ([]send.Coin, error) {
	return scan(ctx, r, coinsWaiting, network, window[send.Coin]{})
}

func (r *reader) CoinsAbove(ctx context.Context, network string, height uint64) ([]send.Coin, error) {
	return scan(ctx, r, coinsByHeight, network, window[send.Coin]{downward: true, above: number(height + 1)})
}

func (tx *transaction) PutTransaction(ctx context.Context, t *send.Transaction) error {
	return put(ctx, tx, transactions, t)
}

func (tx *transaction) PutAttemptHash(
	ctx context.Context,
	network, hash, transactionID string,
	kind send.Kind,
) error {
	return add(ctx, tx, attempts, &attempt{network, hash, transactionID, kind})
}

func (tx *transaction) PutWallet(ctx context.Context, w *send.Wallet) error {
	return put(ctx, tx, wallets, w)
}

func (tx *transaction) BalanceForUpdate(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) (send.Balance, bool, error) {
	return tx.Balance(ctx, network, address, assetID)
}

func (tx *transaction) PutBalance(ctx context.Context, b *send.Balance) error {
	return put(ctx, tx, balances, b)
}

func (tx *transaction) PutCoin(ctx context.Context, c *send.Coin) error {
	return put(ctx, tx, coins, c)
}

func (tx *transaction) DeleteCoin(ctx context.Context, network string, o chain.Outpoint) error {
	return remove(ctx, tx, coins, join(network, o.TxHash, strconv.FormatUint(uint64(o.Vout), 10)))
}
