package sqlstore

// This file keeps the transactions of our wallets as the chain shows them.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

var outgoing = newTable[wallet.Outgoing](
	"outgoing", "outgoing transaction", "network, spend_key",
	named("Key", "spend_key"),
	named("Outpoint.TxHash", "coin_hash"),
	named("Outpoint.Vout", "coin_vout"),
	foreign("Acknowledged"),
)

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

func (tx *transaction) PutOutgoing(ctx context.Context, o *wallet.Outgoing) error {
	return put(ctx, tx, outgoing, o)
}

func (tx *transaction) DeleteOutgoing(ctx context.Context, network, key string) error {
	return remove(ctx, tx, outgoing, network, key)
}
