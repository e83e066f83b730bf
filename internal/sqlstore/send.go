package sqlstore

// This file keeps what follows networks and what is sent: cursors, the outbox, wallets, balances and coins.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

var cursors = newTable(
	"cursors",
	"cursor",
	1,
	func(c *scan.Cursor) *int64 { return &c.Version },
	cols[scan.Cursor](
		str("network", func(c *scan.Cursor) *string { return &c.Network }),
		block("at", func(c *scan.Cursor) *chain.Ref { return &c.At }),
		block("tip", func(c *scan.Cursor) *chain.Ref { return &c.Tip }),
		block("final", func(c *scan.Cursor) *chain.Ref { return &c.Final }),
		block("safe", func(c *scan.Cursor) *chain.Ref { return &c.Safe }),
		doc("recent", func(c *scan.Cursor) *[]chain.Ref { return &c.Recent }),
		note("stopped", func(c *scan.Cursor) *string { return &c.Stopped }),
		at("updated_at", func(c *scan.Cursor) *time.Time { return &c.UpdatedAt }),
	),
)

var ranges = newTable(
	"ranges",
	"back-fill range",
	1,
	func(r *scan.Range) *int64 { return &r.Version },
	cols[scan.Range](
		str("id", func(r *scan.Range) *string { return &r.ID }),
		str("network", func(r *scan.Range) *string { return &r.Network }),
		doc("addresses", func(r *scan.Range) *[]chain.Address { return &r.Addresses }),
		num("next_height", func(r *scan.Range) *uint64 { return &r.Next }),
		num("to_height", func(r *scan.Range) *uint64 { return &r.To }),
		at("created_at", func(r *scan.Range) *time.Time { return &r.CreatedAt }),
	),
)

var retries = newTable(
	"retries",
	"retry",
	1,
	func(r *scan.Retry) *int64 { return &r.Version },
	cols[scan.Retry](
		str("id", func(r *scan.Retry) *string { return &r.ID }),
		str("network", func(r *scan.Retry) *string { return &r.Network }),
		doc("transfer", func(r *scan.Retry) *chain.Transfer { return &r.Transfer }),
		block("block", func(r *scan.Retry) *chain.Ref { return &r.Block }),
		note("error", func(r *scan.Retry) *string { return &r.Error }),
		num("attempts", func(r *scan.Retry) *int { return &r.Attempts }),
		at("due_at", func(r *scan.Retry) *time.Time { return &r.DueAt }),
		at("created_at", func(r *scan.Retry) *time.Time { return &r.CreatedAt }),
	),
)

var transactions = newTable("transactions", "transaction", 1,
	func(t *wallet.Transaction) *int64 { return &t.Version }, cols[wallet.Transaction](
		str("id", func(t *wallet.Transaction) *string { return &t.ID }),
		owned(func(t *wallet.Transaction) *event.Owner { return &t.Owner }),
		str("network", func(t *wallet.Transaction) *string { return &t.Network }),
		str("kind", func(t *wallet.Transaction) *wallet.Kind { return &t.Kind }),
		str("object_id", func(t *wallet.Transaction) *string { return &t.ObjectID }),
		doc("instruction", func(t *wallet.Transaction) *chain.Order { return &t.Order }),
		col[wallet.Transaction]{
			name:   "from_address",
			hidden: true,
			at:     func(t *wallet.Transaction) codec { return text[chain.Address]{&t.Order.From.Address} },
		},
		str("state", func(t *wallet.Transaction) *wallet.State { return &t.State }),
		doc("attempts", func(t *wallet.Transaction) *[]wallet.Attempt { return &t.Attempts }),
		doc("batch_members", func(t *wallet.Transaction) *[]string { return &t.BatchMembers }),
		str("batched_by", func(t *wallet.Transaction) *string { return &t.BatchedBy }),
		num("nonce", func(t *wallet.Transaction) *uint64 { return &t.Nonce }),
		str("tx_hash", func(t *wallet.Transaction) *string { return &t.TxHash }),
		block("block", func(t *wallet.Transaction) *chain.Ref { return &t.Block }),
		amt("fee", func(t *wallet.Transaction) *chain.Amount { return &t.Fee }),
		doc("transfers", func(t *wallet.Transaction) *[]chain.Transfer { return &t.Transfers }),
		str("failure", func(t *wallet.Transaction) *string { return &t.Failure }),
		str("conflict_tx_hash", func(t *wallet.Transaction) *string { return &t.Conflict.TxHash }),
		yes("conflict_own", func(t *wallet.Transaction) *bool { return &t.Conflict.Own }),
		at("give_up_at", func(t *wallet.Transaction) *time.Time { return &t.GiveUpAt }),
		at("due_at", func(t *wallet.Transaction) *time.Time { return &t.DueAt }),
		at("created_at", func(t *wallet.Transaction) *time.Time { return &t.CreatedAt }),
	))

// attempt is the hash of a transaction that the engine signed.
type attempt struct {
	network, hash, transactionID string
	kind                         wallet.Kind
}

var attempts = newTable("attempt_hashes", "attempt", 2, nil, cols[attempt](
	str("network", func(a *attempt) *string { return &a.network }),
	str("hash", func(a *attempt) *string { return &a.hash }),
	str("transaction_id", func(a *attempt) *string { return &a.transactionID }),
	str("kind", func(a *attempt) *wallet.Kind { return &a.kind }),
))

var wallets = newTable(
	"wallets",
	"wallet",
	2,
	func(w *wallet.Wallet) *int64 { return &w.Version },
	cols[wallet.Wallet](
		str("network", func(w *wallet.Wallet) *string { return &w.Network }),
		str("address", func(w *wallet.Wallet) *chain.Address { return &w.Party.Address }),
		key("address_key", func(w *wallet.Wallet) *chain.KeyRef { return &w.Party.Key }),
		num("next_nonce", func(w *wallet.Wallet) *uint64 { return &w.NextNonce }),
		num("since", func(w *wallet.Wallet) *uint64 { return &w.Since }),
		num("epoch", func(w *wallet.Wallet) *uint64 { return &w.Epoch }),
		str("frozen", func(w *wallet.Wallet) *wallet.FreezeReason { return &w.Frozen }),
		str("frozen_by", func(w *wallet.Wallet) *string { return &w.FrozenBy }),
		at("frozen_at", func(w *wallet.Wallet) *time.Time { return &w.FrozenAt }),
	),
)

var balances = newTable(
	"balances",
	"balance",
	3,
	func(b *wallet.Balance) *int64 { return &b.Version },
	cols[wallet.Balance](
		str("network", func(b *wallet.Balance) *string { return &b.Network }),
		str("address", func(b *wallet.Balance) *chain.Address { return &b.Address }),
		str("asset_id", func(b *wallet.Balance) *string { return &b.AssetID }),
		owned(func(b *wallet.Balance) *event.Owner { return &b.Owner }),
		amt("on_chain", func(b *wallet.Balance) *chain.Amount { return &b.OnChain }),
		block("at", func(b *wallet.Balance) *chain.Ref { return &b.At }),
		amt("reserved", func(b *wallet.Balance) *chain.Amount { return &b.Reserved }),
		doc("reservations", func(b *wallet.Balance) *[]wallet.Reservation { return &b.Reservations }),
	),
)

var coins = newTable("coins", "coin", 3, func(c *wallet.Coin) *int64 { return &c.Version }, cols[wallet.Coin](
	str("network", func(c *wallet.Coin) *string { return &c.Network }),
	str("tx_hash", func(c *wallet.Coin) *string { return &c.Outpoint.TxHash }),
	num("vout", func(c *wallet.Coin) *uint32 { return &c.Outpoint.Vout }),
	str("address", func(c *wallet.Coin) *chain.Address { return &c.Owner.Address }),
	key("address_key", func(c *wallet.Coin) *chain.KeyRef { return &c.Owner.Key }),
	amt("amount", func(c *wallet.Coin) *chain.Amount { return &c.Amount }),
	num("height", func(c *wallet.Coin) *uint64 { return &c.Height }),
	str("reserved_by", func(c *wallet.Coin) *string { return &c.ReservedBy }),
	str("spent_by", func(c *wallet.Coin) *string { return &c.SpentBy }),
	num("spent_at", func(c *wallet.Coin) *uint64 { return &c.SpentAt }),
	num("depth", func(c *wallet.Coin) *int { return &c.Depth }),
	num("mature_at", func(c *wallet.Coin) *uint64 { return &c.MatureAt }),
))

var outgoing = newTable("outgoing", "outgoing transaction", 2,
	func(o *wallet.Outgoing) *int64 { return &o.Version }, cols[wallet.Outgoing](
		str("network", func(o *wallet.Outgoing) *string { return &o.Network }),
		str("spend_key", func(o *wallet.Outgoing) *string { return &o.Key }),
		str("address", func(o *wallet.Outgoing) *chain.Address { return &o.Address }),
		num("nonce", func(o *wallet.Outgoing) *uint64 { return &o.Nonce }),
		str("coin_hash", func(o *wallet.Outgoing) *string { return &o.Outpoint.TxHash }),
		num("coin_vout", func(o *wallet.Outgoing) *uint32 { return &o.Outpoint.Vout }),
		str("tx_hash", func(o *wallet.Outgoing) *string { return &o.TxHash }),
		block("block", func(o *wallet.Outgoing) *chain.Ref { return &o.Block }),
		yes("failed", func(o *wallet.Outgoing) *bool { return &o.Failed }),
		yes("unrecorded", func(o *wallet.Outgoing) *bool { return &o.Unrecorded }),
		doc("transfers", func(o *wallet.Outgoing) *[]chain.Transfer { return &o.Transfers }),
		amt("fee", func(o *wallet.Outgoing) *chain.Amount { return &o.Fee }),
		note("acknowledged", func(o *wallet.Outgoing) *string { return &o.Acknowledged }),
	))

func (r *reader) Cursor(ctx context.Context, network string) (scan.Cursor, bool, error) {
	return look(ctx, r, cursors, false, network)
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

func (r *reader) LiveTransactions(
	ctx context.Context,
	network string,
	from chain.Address,
) ([]wallet.Transaction, error) {
	q := &query{}
	q.has(live+" AND network = ? AND from_address = ?", network, string(from))

	return list(ctx, r, transactions, q, "ORDER BY id", 0)
}

func (r *reader) OwnTransactions(
	ctx context.Context,
	network string,
	hashes []string,
) (map[string]wallet.Kind, error) {
	own := map[string]wallet.Kind{}

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
	q := of(owner, "")
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

func (r *reader) OutgoingByKey(
	ctx context.Context,
	network string,
	keys []string,
) ([]wallet.Outgoing, error) {
	return among(ctx, r, outgoing, "spend_key", keys, "", "network = ?", network)
}

func (r *reader) OutgoingByHash(
	ctx context.Context,
	network string,
	hashes []string,
) ([]wallet.Outgoing, error) {
	return among(ctx, r, outgoing, "tx_hash", hashes, "", "network = ?", network)
}

func (r *reader) OutgoingOf(
	ctx context.Context,
	network string,
	address chain.Address,
	from uint64,
	limit int,
) ([]wallet.Outgoing, error) {
	q := &query{}
	q.has("network = ? AND address = ? AND block_height >= ?", network, string(address), from)

	return list(ctx, r, outgoing, q, "ORDER BY block_height, spend_key", limit)
}

func (r *reader) OutgoingAbove(
	ctx context.Context,
	network string,
	height uint64,
) ([]wallet.Outgoing, error) {
	q := &query{}
	q.has("network = ? AND block_height > ?", network, height)

	return list(ctx, r, outgoing, q, "ORDER BY block_height, spend_key", 0)
}

func (r *reader) UnrecordedOutgoing(
	ctx context.Context,
	network string,
	address chain.Address,
	since time.Time,
) ([]wallet.Outgoing, error) {
	q := &query{}
	q.has("unrecorded AND network = ? AND (acknowledged = '' OR block_time >= ?)", network, since)

	if address != "" {
		q.has("address = ?", string(address))
	}

	return list(ctx, r, outgoing, q, "ORDER BY block_height, spend_key", 0)
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

func (tx *transaction) PutOutgoing(ctx context.Context, o *wallet.Outgoing) error {
	return put(ctx, tx, outgoing, o)
}

func (tx *transaction) DeleteOutgoing(ctx context.Context, network, key string) error {
	return remove(ctx, tx, outgoing, network, key)
}
