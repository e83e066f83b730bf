package sqlstore

// This file keeps the state of networks and of sending: cursors, the outbox, wallets, balances and coins.

import (
	"context"
	"reflect"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

var cursors = newTable[scan.Cursor]("cursors", "cursor", "network", foreign("Stopped"))

var ranges = newTable[scan.Range](
	"ranges", "back-fill range", "id",
	named("Next", "next_height"),
	named("To", "to_height"),
)

var positions = newTable[scan.Position](
	"positions", "position", "network, address", named("Read", "read_to"),
)

var retries = newTable[scan.Retry]("retries", "retry", "id", foreign("Error"))

var transactions = newTable[wallet.Transaction](
	"transactions", "transaction", "id",
	named("Order", "instruction"),
	foreign("Waits"),
	derived("from_address", reflect.TypeFor[wallet.Transaction](), "Order", "From", "Address"),
)

// attempt is the hash of a transaction that the engine signed.
type attempt struct {
	Network, Hash, TransactionID string
	Kind                         wallet.Kind
}

var attempts = newTable[attempt]("attempt_hashes", "attempt", "network, hash")

var wallets = newTable[wallet.Wallet](
	"wallets", "wallet", "network, address",
	named("Party.Address", "address"),
	named("Party.Key", "address_key"),
)

var balances = newTable[wallet.Balance]("balances", "balance", "network, address, asset_id")

var coins = newTable[wallet.Coin](
	"coins", "coin", "network, tx_hash, vout",
	named("Coin.Outpoint.TxHash", "tx_hash"),
	named("Coin.Outpoint.Vout", "vout"),
	named("Coin.Owner.Address", "address"),
	named("Coin.Owner.Key", "address_key"),
)

func (r *reader) Cursor(ctx context.Context, network string) (scan.Cursor, bool, error) {
	return look(ctx, r, cursors, false, network)
}

func (r *reader) Positions(
	ctx context.Context,
	network string,
	wanted []chain.Address,
) ([]scan.Position, error) {
	return among(ctx, r, positions, "address", texts(wanted), "", "network = ?", network)
}

func (r *reader) Ranges(ctx context.Context, network string, limit int) ([]scan.Range, error) {
	q := &query{}
	q.has("network = ?", network)

	return list(ctx, r, ranges, q, "ORDER BY id", limit)
}

func (r *reader) Retries(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]scan.Retry, error) {
	q := &query{}
	q.has("network = ? AND (due_at IS NULL OR due_at <= ?)", network, now)

	return list(ctx, r, retries, q, "ORDER BY id", limit)
}

func (tx *transaction) PutCursor(ctx context.Context, c *scan.Cursor) error {
	return put(ctx, tx, cursors, c)
}

func (tx *transaction) PutPosition(ctx context.Context, p *scan.Position) error {
	return put(ctx, tx, positions, p)
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
	return get(ctx, r, transactions, id)
}

func (r *reader) TransactionsByID(ctx context.Context, ids []string) ([]wallet.Transaction, error) {
	return several(ctx, r, transactions, ids)
}

func (r *reader) TransactionsOf(ctx context.Context, objectID string) ([]wallet.Transaction, error) {
	q := &query{}
	q.has("object_id = ?", objectID)

	return list(ctx, r, transactions, q, "ORDER BY id", 0)
}

func (r *reader) Transactions(
	ctx context.Context,
	network, after string,
	limit int,
) ([]wallet.Transaction, error) {
	q := &query{}
	q.has("network = ?", network)

	if after != "" {
		q.has("id < ?", after)
	}

	return list(ctx, r, transactions, q, newest, limit)
}

const live = "state NOT IN ('confirmed', 'failed')"

func (r *reader) DueTransactions(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]wallet.Transaction, error) {
	q := &query{}
	q.has("due_at IS NOT NULL AND network = ? AND due_at <= ?", network, now)

	return list(ctx, r, transactions, q, "ORDER BY id", limit)
}

func (r *reader) DueNetworks(ctx context.Context) (networks []string, err error) {
	if err := r.flushTables(ctx, transactions.name); err != nil {
		return nil, err
	}

	err = r.retry(ctx, func() error {
		if err := r.ready(ctx); err != nil {
			return r.readError(ctx, err, transactions.name)
		}

		networks = nil

		text := r.store.text(
			"SELECT DISTINCT network FROM {transactions} WHERE due_at IS NOT NULL ORDER BY network",
		)
		if err := sqlx.SelectContext(ctx, r.on, &networks, text); err != nil {
			return r.readError(ctx, err, transactions.name)
		}

		return nil
	})

	return networks, err
}

func (r *reader) LiveTransactions(
	ctx context.Context,
	network string,
	from chain.Address,
) ([]wallet.Transaction, error) {
	q := &query{}
	q.has(live+" AND network = ? AND from_address = ?", network, string(from))
	q.is("account_id", r.store.homes.common(byAddress, addressPlace(network, string(from))))

	return list(ctx, r, transactions, q, "ORDER BY id", 0)
}

func (r *reader) LiveTopUps(ctx context.Context, network string) ([]wallet.Transaction, error) {
	q := &query{}
	q.has("kind = 'topup' AND "+live+" AND network = ?", network)

	return list(ctx, r, transactions, q, "ORDER BY id", 0)
}

func (r *reader) OwnTransactions(
	ctx context.Context,
	network string,
	hashes []string,
) (map[string]wallet.OwnTransaction, error) {
	own := map[string]wallet.OwnTransaction{}

	found, err := among(ctx, r, attempts, "hash", hashes, "", "network = ?", network)
	if err != nil {
		return nil, err
	}

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
	return look(ctx, r, wallets, false, network, string(address))
}

func (r *reader) Balance(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) (wallet.Balance, bool, error) {
	return look(ctx, r, balances, false, network, string(address), assetID)
}

func (r *reader) Balances(ctx context.Context, owner event.Owner) ([]wallet.Balance, error) {
	q := of(r, owner, "")
	return list(ctx, r, balances, q, "ORDER BY network, asset_id, address", 0)
}

func (r *reader) BalancesOf(ctx context.Context, network string) ([]wallet.Balance, error) {
	q := &query{}
	q.has("network = ?", network)

	return list(ctx, r, balances, q, "ORDER BY address, asset_id", 0)
}

func (r *reader) Coins(ctx context.Context, network string, address chain.Address) ([]wallet.Coin, error) {
	q := &query{}
	q.has("spent_by = '' AND network = ? AND address = ?", network, string(address))

	return list(ctx, r, coins, q, "ORDER BY tx_hash, vout", 0)
}

func (r *reader) CoinsOf(ctx context.Context, network string, hashes []string) ([]wallet.Coin, error) {
	return among(ctx, r, coins, "tx_hash", hashes, "", "network = ?", network)
}

func (r *reader) UnconfirmedCoins(ctx context.Context, network string) ([]wallet.Coin, error) {
	q := &query{}
	q.has("height = 0 AND network = ?", network)

	return list(ctx, r, coins, q, "ORDER BY tx_hash, vout", 0)
}

func (r *reader) CoinsAbove(ctx context.Context, network string, height uint64) ([]wallet.Coin, error) {
	made, spent := &query{}, &query{}
	made.has("network = ? AND height > ?", network, height)

	out, err := list(ctx, r, coins, made, "ORDER BY height, tx_hash, vout", 0)
	if err != nil {
		return nil, err
	}

	spent.has("spent_at > 0 AND network = ? AND spent_at > ?", network, height)

	more, err := list(ctx, r, coins, spent, "ORDER BY spent_at, tx_hash, vout", 0)
	if err != nil {
		return nil, err
	}

	for _, c := range more {
		if c.Height <= height {
			out = append(out, c)
		}
	}

	return out, nil
}

func (r *reader) FrozenWallets(ctx context.Context, network string, limit int) ([]wallet.Wallet, error) {
	q := &query{}
	q.has("frozen <> '' AND network = ?", network)

	return list(ctx, r, wallets, q, "ORDER BY address", limit)
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
	return look(ctx, &tx.reader, balances, true, network, string(address), assetID)
}

func (tx *transaction) PutBalance(ctx context.Context, b *wallet.Balance) error {
	return put(ctx, tx, balances, b)
}

func (tx *transaction) PutCoin(ctx context.Context, c *wallet.Coin) error {
	return put(ctx, tx, coins, c)
}

func (tx *transaction) DeleteCoin(ctx context.Context, network string, o chain.Outpoint) error {
	return remove(ctx, tx, coins, network, o.TxHash, o.Vout)
}
