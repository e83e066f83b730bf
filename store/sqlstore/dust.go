package sqlstore

// This file keeps transfers that are too small to be payments.

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

var dust = newTable[invoice.Dust]("dust", "dust", "network, address, asset_id", named("Count", "transfers"))

var dustTransfers = newTable[invoice.DustTransfer](
	"dust_transfers", "dust transfer", "network, tx_hash, tx_index, address, asset_id",
)

func (r *reader) DustOf(
	ctx context.Context,
	network string,
	addresses []chain.Address,
) ([]invoice.Dust, error) {
	return among(ctx, r, dust, "address", texts(addresses), "", "network = ?", network)
}

func (r *reader) DustTransfers(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
	limit int,
) ([]invoice.DustTransfer, error) {
	q := &query{}
	q.has("network = ? AND address = ? AND asset_id = ?", network, string(address), assetID)

	return list(ctx, r, dustTransfers, q, "ORDER BY block_height, tx_hash, tx_index", limit)
}

func (r *reader) DustByHash(
	ctx context.Context,
	network string,
	hashes []string,
) ([]invoice.DustTransfer, error) {
	return among(ctx, r, dustTransfers, "tx_hash", hashes, "", "network = ?", network)
}

func (r *reader) DustAbove(
	ctx context.Context,
	network string,
	height uint64,
) ([]invoice.DustTransfer, error) {
	q := &query{}
	q.has("network = ? AND block_height > ?", network, int64(height))

	return list(ctx, r, dustTransfers, q, "ORDER BY block_height, tx_hash, tx_index", 0)
}

func (tx *transaction) PutDust(ctx context.Context, d *invoice.Dust) error {
	return put(ctx, tx, dust, d)
}

func (tx *transaction) PutDustTransfer(ctx context.Context, d invoice.DustTransfer) error {
	return add(ctx, tx, dustTransfers, &d)
}

func (tx *transaction) DeleteDustTransfer(
	ctx context.Context,
	network string,
	key invoice.TransferKey,
) error {
	return remove(
		ctx, tx, dustTransfers, network, key.TxHash, key.Index, string(key.To), key.AssetID,
	)
}
