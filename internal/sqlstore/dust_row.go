package sqlstore

// This file holds the rows of dust.

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// dustRow is a row of {dust}.
type dustRow struct {
	Network string        `db:"network"`
	Address chain.Address `db:"address"`
	AssetID string        `db:"asset_id"`
	Amount  amount        `db:"amount"`
	Count   int64         `db:"transfers"`
	Version int64         `db:"version"`
}

func dustRowOf(from *invoice.Dust) dustRow {
	return dustRow{
		Network: from.Network,
		Address: from.Address,
		AssetID: from.AssetID,
		Amount:  amount(from.Amount),
		Count:   from.Count,
		Version: from.Version,
	}
}

func (r *dustRow) record() invoice.Dust {
	return invoice.Dust{
		Network: r.Network,
		Address: r.Address,
		AssetID: r.AssetID,
		Amount:  chain.Amount(r.Amount),
		Count:   r.Count,
		Version: r.Version,
	}
}

// dustTransferRow is a row of {dust_transfers}.
type dustTransferRow struct {
	Network     string        `db:"network"`
	TxHash      string        `db:"tx_hash"`
	TxIndex     uint32        `db:"tx_index"`
	Address     chain.Address `db:"address"`
	AssetID     string        `db:"asset_id"`
	FromAddress chain.Address `db:"from_address"`
	Amount      amount        `db:"amount"`
	BlockHeight bits          `db:"block_height"`
	BlockHash   string        `db:"block_hash"`
	BlockTime   moment        `db:"block_time"`
}

func dustTransferRowOf(from *invoice.DustTransfer) dustTransferRow {
	return dustTransferRow{
		Network:     from.Network,
		TxHash:      from.TxHash,
		TxIndex:     from.TxIndex,
		Address:     from.Address,
		AssetID:     from.AssetID,
		FromAddress: from.FromAddress,
		Amount:      amount(from.Amount),
		BlockHeight: bits(from.Block.Height),
		BlockHash:   from.Block.Hash,
		BlockTime:   moment(from.Block.Time),
	}
}

func (r *dustTransferRow) record() invoice.DustTransfer {
	return invoice.DustTransfer{
		Network:     r.Network,
		TxHash:      r.TxHash,
		TxIndex:     r.TxIndex,
		Address:     r.Address,
		AssetID:     r.AssetID,
		FromAddress: r.FromAddress,
		Amount:      chain.Amount(r.Amount),
		Block:       blockRef(r.BlockHeight, r.BlockHash, r.BlockTime),
	}
}
