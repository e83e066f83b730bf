package sqlstore

// This file keeps what follows networks and what is sent: cursors, the outbox, wallets, balances and coins.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/send"
	"github.com/seed-8ee7f392/payments/chain/watch"
	"github.com/seed-8ee7f392/payments/event"
)

var cursors = newTable(
	"cursors",
	"cursor",
	1,
	func(c *watch.Cursor) *int64 { return &c.Version },
	cols[watch.Cursor](
		str("network", func(c *watch.Cursor) *string { return &c.Network }),
		block("at", func(c *watch.Cursor) *chain.Ref { return &c.At }),
		block("tip", func(c *watch.Cursor) *chain.Ref { return &c.Tip }),
		block("final", func(c *watch.Cursor) *chain.Ref { return &c.Final }),
		block("safe", func(c *watch.Cursor) *chain.Ref { return &c.Safe }),
		doc("recent", func(c *watch.Cursor) *[]chain.Ref { return &c.Recent }),
		note("stopped", func(c *watch.Cursor) *string { return &c.Stopped }),
		at("updated_at", func(c *watch.Cursor) *time.Time { return &c.UpdatedAt }),
	),
)

var ranges = newTable(
	"ranges",
	"back-fill range",
	1,
	func(r *watch.Range) *int64 { return &r.Version },
	cols[watch.Range](
		str("id", func(r *watch.Range) *string { return &r.ID }),
		str("network", func(r *watch.Range) *string { return &r.Network }),
		doc("addresses", func(r *watch.Range) *[]chain.Address { return &r.Addresses }),
		num("next_height", func(r *watch.Range) *uint64 { return &r.Next }),
		num("to_height", func(r *watch.Range) *uint64 { return &r.To }),
		at("created_at", func(r *watch.Range) *time.Time { return &r.CreatedAt }),
	),
)

var retries = newTable(
	"retries",
	"retry",
	1,
	func(r *watch.Retry) *int64 { return &r.Version },
	cols[watch.Retry](
		str("id", func(r *watch.Retry) *string { return &r.ID }),
		str("network", func(r *watch.Retry) *string { return &r.Network }),
		doc("transfer", func(r *watch.Retry) *chain.Transfer { return &r.Transfer }),
		block("block", func(r *watch.Retry) *chain.Ref { return &r.Block }),
		note("error", func(r *watch.Retry) *string { return &r.Error }),
		num("attempts", func(r *watch.Retry) *int { return &r.Attempts }),
		at("due_at", func(r *watch.Retry) *time.Time { return &r.DueAt }),
		at("created_at", func(r *watch.Retry) *time.Time { return &r.CreatedAt }),
	),
)

var transactions = newTable("transactions", "transaction", 1,
	func(t *send.Transaction) *int64 { return &t.Version }, cols[send.Transaction](
		str("id", func(t *send.Transaction) *string { return &t.ID }),
		owned(func(t *send.Transaction) *event.Owner { return &t.Owner }),
		str("network", func(t *send.Transaction) *string { return &t.Network }),
		str("kind", func(t *send.Transaction) *send.Kind { return &t.Kind }),
		str("object_id", func(t *send.Transaction) *string { return &t.ObjectID }),
		doc("instruction", func(t *send.Transaction) *chain.Order { return &t.Order }),
		col[send.Transaction]{
			name:   "from_address",
			hidden: true,
			at:     func(t *send.Transaction) codec { return text[chain.Address]{&t.Order.From.Address} },
		},
		str("state", func(t *send.Transaction) *send.State { return &t.State }),
		doc("attempts", func(t *send.Transaction) *[]send.Attempt { return &t.Attempts }),
		doc("carries", func(t *send.Transaction) *[]string { return &t.Carries }),
		str("carried_by", func(t *send.Transaction) *string { return &t.CarriedBy }),
		num("nonce", func(t *send.Transaction) *uint64 { return &t.Nonce }),
		str("tx_hash", func(t *send.Transaction) *string { return &t.TxHash }),
		block("block", func(t *send.Transaction) *chain.Ref { return &t.Block }),
		amt("fee", func(t *send.Transaction) *chain.Amount { return &t.Fee }),
		doc("transfers", func(t *send.Transaction) *[]chain.Transfer { return &t.Transfers }),
		str("failure", func(t *send.Transaction) *string { return &t.Failure }),
		at("give_up_at", func(t *send.Transaction) *time.Time { return &t.GiveUpAt }),
		at("due_at", func(t *send.Transaction) *time.Time { return &t.DueAt }),
		at("created_at", func(t *send.Transaction) *time.Time { return &t.CreatedAt }),
	))

// attempt is the hash of signed bytes of ours.
type attempt struct {
	network, hash, transactionID string
	kind                         send.Kind
}

var attempts = newTable("attempt_hashes", "attempt", 2, nil, cols[attempt](
	str("network", func(a *attempt) *string { return &a.network }),
	str("hash", func(a *attempt) *string { return &a.hash }),
	str("transaction_id", func(a *attempt) *string { return &a.transactionID }),
	str("kind", func(a *attempt) *send.Kind { return &a.kind }),
))

var wallets = newTable(
	"wallets",
	"wallet",
	2,
	func(w *send.Wallet) *int64 { return &w.Version },
	cols[send.Wallet](
		str("network", func(w *send.Wallet) *string { return &w.Network }),
		str("address", func(w *send.Wallet) *chain.Address { return &w.Party.Address }),
		key("address_key", func(w *send.Wallet) *chain.KeyRef { return &w.Party.Key }),
		num("next_nonce", func(w *send.Wallet) *uint64 { return &w.NextNonce }),
	),
)

var balances = newTable(
	"balances",
	"balance",
	3,
	func(b *send.Balance) *int64 { return &b.Version },
	cols[send.Balance](
		str("network", func(b *send.Balance) *string { return &b.Network }),
		str("address", func(b *send.Balance) *chain.Address { return &b.Address }),
		str("asset_id", func(b *send.Balance) *string { return &b.AssetID }),
		owned(func(b *send.Balance) *event.Owner { return &b.Owner }),
		amt("on_chain", func(b *send.Balance) *chain.Amount { return &b.OnChain }),
		block("at", func(b *send.Balance) *chain.Ref { return &b.At }),
		amt("reserved", func(b *send.Balance) *chain.Amount { return &b.Reserved }),
		doc("reservations", func(b *send.Balance) *[]send.Reservation { return &b.Reservations }),
	),
)

var coins = newTable("coins", "coin", 3, func(c *send.Coin) *int64 { return &c.Version }, cols[send.Coin](
	str("network", func(c *send.Coin) *string { return &c.Network }),
	str("tx_hash", func(c *send.Coin) *string { return &c.Outpoint.TxHash }),
	num("vout", func(c *send.Coin) *uint32 { return &c.Outpoint.Vout }),
	str("address", func(c *send.Coin) *chain.Address { return &c.Owner.Address }),
	key("address_key", func(c *send.Coin) *chain.KeyRef { return &c.Owner.Key }),
	amt("amount", func(c *send.Coin) *chain.Amount { return &c.Amount }),
	num("height", func(c *send.Coin) *uint64 { return &c.Height }),
	str("reserved_by", func(c *send.Coin) *string { return &c.ReservedBy }),
	str("spent_by", func(c *send.Coin) *string { return &c.SpentBy }),
	num("spent_at", func(c *send.Coin) *uint64 { return &c.SpentAt }),
	num("depth", func(c *send.Coin) *int { return &c.Depth }),
))

func (r *reader) Cursor(ctx context.Context, network string) (watch.Cursor, bool, error) {
	return look(ctx, r, cursors, false, network)
}

func (r *reader) Ranges(ctx context.Context, network string, limit int) ([]watch.Range, error) {
	q := &query{}
	q.has("network = ?", network)

	return list(ctx, r, ranges, q, "ORDER BY id", limit)
}

func (r *reader) Retries(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]watch.Retry, error) {
	q := &query{}
	q.has("network = ? AND (due_at IS NULL OR due_at <= ?)", network, now)

	return list(ctx, r, retries, q, "ORDER BY id", limit)
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
	q := &query{}
	q.has("object_id = ?", objectID)

	return list(ctx, r, transactions, q, "ORDER BY id", 0)
}

func (r *reader) Transactions(
	ctx context.Context,
	network, after string,
	limit int,
) ([]send.Transaction, error) {
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
) ([]send.Transaction, error) {
	q := &query{}
	q.has("due_at IS NOT NULL AND network = ? AND due_at <= ?", network, now)

	return list(ctx, r, transactions, q, "ORDER BY id", limit)
}

func (r *reader) LiveTransactions(
	ctx context.Context,
	network string,
	from chain.Address,
) ([]send.Transaction, error) {
	q := &query{}
	q.has(live+" AND network = ? AND from_address = ?", network, string(from))

	return list(ctx, r, transactions, q, "ORDER BY id", 0)
}

func (r *reader) OwnTransactions(
	ctx context.Context,
	network string,
	hashes []string,
) (map[string]send.Kind, error) {
	own := map[string]send.Kind{}

	found, err := among(ctx, r, attempts, "hash", hashes, "", "network = ?", network)
	if err != nil {
		return nil, err
	}

	for _, a := range found {
		own[a.hash] = a.kind
	}

	return own, nil
}

func (r *reader) Wallet(
	ctx context.Context,
	network string,
	address chain.Address,
) (send.Wallet, bool, error) {
	return look(ctx, r, wallets, false, network, string(address))
}

func (r *reader) Balance(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) (send.Balance, bool, error) {
	return look(ctx, r, balances, false, network, string(address), assetID)
}

func (r *reader) Balances(ctx context.Context, owner event.Owner) ([]send.Balance, error) {
	q := of(owner, "")
	return list(ctx, r, balances, q, "ORDER BY network, asset_id, address", 0)
}

func (r *reader) BalancesOf(ctx context.Context, network string) ([]send.Balance, error) {
	q := &query{}
	q.has("network = ?", network)

	return list(ctx, r, balances, q, "ORDER BY address, asset_id", 0)
}

func (r *reader) Coins(ctx context.Context, network string, address chain.Address) ([]send.Coin, error) {
	q := &query{}
	q.has("spent_by = '' AND network = ? AND address = ?", network, string(address))

	return list(ctx, r, coins, q, "ORDER BY tx_hash, vout", 0)
}

func (r *reader) CoinsOf(ctx context.Context, network string, hashes []string) ([]send.Coin, error) {
	return among(ctx, r, coins, "tx_hash", hashes, "", "network = ?", network)
}

func (r *reader) WaitingCoins(ctx context.Context, network string) ([]send.Coin, error) {
	q := &query{}
	q.has("height = 0 AND network = ?", network)

	return list(ctx, r, coins, q, "ORDER BY tx_hash, vout", 0)
}

func (r *reader) CoinsAbove(ctx context.Context, network string, height uint64) ([]send.Coin, error) {
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
	return look(ctx, &tx.reader, balances, true, network, string(address), assetID)
}

func (tx *transaction) PutBalance(ctx context.Context, b *send.Balance) error {
	return put(ctx, tx, balances, b)
}

func (tx *transaction) PutCoin(ctx context.Context, c *send.Coin) error {
	return put(ctx, tx, coins, c)
}

func (tx *transaction) DeleteCoin(ctx context.Context, network string, o chain.Outpoint) error {
	return remove(ctx, tx, coins, network, o.TxHash, o.Vout)
}
