package memory

// This file keeps transfers that are too small to be payments.

import (
	"context"
	"slices"
	"strconv"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

var (
	dust = newKind(
		"dust", func(d *invoice.Dust) string { return join(d.Network, string(d.Address), d.AssetID) },
		func(d *invoice.Dust) *int64 { return &d.Version },
	)
	dustByAddress = dust.ordered(func(d *invoice.Dust) (string, string, bool) {
		return join(d.Network, string(d.Address)), d.AssetID, true
	})

	dustTransfers = newKind(
		"dust transfer",
		func(d *invoice.DustTransfer) string { return dustKey(d.Network, d.TransferKey()) }, nil,
	)
	dustTransfersAt = dustTransfers.ordered(func(d *invoice.DustTransfer) (string, string, bool) {
		return join(d.Network, string(d.Address), d.AssetID), dustRank(d), true
	})
	dustTransfersByHash = dustTransfers.ordered(func(d *invoice.DustTransfer) (string, string, bool) {
		return join(d.Network, d.TxHash), dustRank(d), true
	})
	dustTransfersByHeight = dustTransfers.ordered(func(d *invoice.DustTransfer) (string, string, bool) {
		return d.Network, dustRank(d), true
	})
)

func dustKey(network string, k invoice.TransferKey) string {
	return join(network, k.TxHash, strconv.FormatUint(uint64(k.Index), 10), string(k.To), k.AssetID)
}

func dustRank(d *invoice.DustTransfer) string {
	return join(
		number(d.Block.Height), d.TxHash, number(uint64(d.TxIndex)), string(d.Address), d.AssetID,
	)
}

func (r *reader) DustOf(
	ctx context.Context,
	network string,
	addresses []chain.Address,
) ([]invoice.Dust, error) {
	var out []invoice.Dust

	for _, address := range slices.Compact(slices.Sorted(slices.Values(addresses))) {
		found, err := scanRows(ctx, r, dustByAddress, join(network, string(address)), window[invoice.Dust]{})
		if err != nil {
			return nil, err
		}

		out = append(out, found...)
	}

	return out, nil
}

func (r *reader) DustTransfers(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
	limit int,
) ([]invoice.DustTransfer, error) {
	return scanRows(
		ctx, r, dustTransfersAt, join(network, string(address), assetID),
		window[invoice.DustTransfer]{limit: limit},
	)
}

func (r *reader) DustByHash(
	ctx context.Context,
	network string,
	hashes []string,
) ([]invoice.DustTransfer, error) {
	var out []invoice.DustTransfer

	for _, hash := range slices.Compact(slices.Sorted(slices.Values(hashes))) {
		found, err := scanRows(
			ctx, r, dustTransfersByHash, join(network, hash), window[invoice.DustTransfer]{},
		)
		if err != nil {
			return nil, err
		}

		out = append(out, found...)
	}

	return out, nil
}

func (r *reader) DustAbove(
	ctx context.Context,
	network string,
	height uint64,
) ([]invoice.DustTransfer, error) {
	found, err := scanRows(
		ctx, r, dustTransfersByHeight, network,
		window[invoice.DustTransfer]{downward: true, above: number(height + 1)},
	)
	slices.Reverse(found)

	return found, err
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
	return remove(ctx, tx, dustTransfers, dustKey(network, key))
}
