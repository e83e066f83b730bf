package kv

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

var (
	dust = newTable(
		14, "dust",
		func(d *invoice.Dust) key { return keyOf(d.Network, d.Address, d.AssetID) },
		func(d *invoice.Dust) *int64 { return &d.Version },
	)

	dustTransfers = newTable(
		15,
		"dust transfer",
		func(d *invoice.DustTransfer) key { return keyOf(d.Network, d.TxHash, d.TxIndex, d.Address, d.AssetID) },
		nil,
	)
	dustTransfersAt = dustTransfers.ordered(1, func(d *invoice.DustTransfer) key {
		return keyOf(d.Network, d.Address, d.AssetID, d.Block.Height)
	})
	dustTransfersByHash = dustTransfers.ordered(2, func(d *invoice.DustTransfer) key {
		return keyOf(d.Network, d.TxHash, d.Block.Height)
	})
	dustTransfersByHeight = dustTransfers.ordered(3, func(d *invoice.DustTransfer) key {
		return keyOf(d.Network, d.Block.Height)
	})
)

func (r *reader) DustOf(
	ctx context.Context,
	network string,
	addresses []chain.Address,
) ([]invoice.Dust, error) {
	return among(ctx, r, dust.primary(), each(network, addresses), window[invoice.Dust]{})
}

func (r *reader) DustTransfers(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
	limit int,
) ([]invoice.DustTransfer, error) {
	return list(
		ctx, r, dustTransfersAt, keyOf(network, address, assetID),
		window[invoice.DustTransfer]{limit: limit},
	)
}

func (r *reader) DustByHash(
	ctx context.Context,
	network string,
	hashes []string,
) ([]invoice.DustTransfer, error) {
	return among(ctx, r, dustTransfersByHash, each(network, hashes), window[invoice.DustTransfer]{})
}

func (r *reader) DustAbove(
	ctx context.Context,
	network string,
	height uint64,
) ([]invoice.DustTransfer, error) {
	w := window[invoice.DustTransfer]{from: upTo(height)}

	return list(ctx, r, dustTransfersByHeight, keyOf(network), w)
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
	k invoice.TransferKey,
) error {
	return remove(ctx, tx, dustTransfers, dustTransfers.at(network, k.TxHash, k.Index, k.To, k.AssetID))
}
