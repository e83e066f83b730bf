package sqlstore

// This file holds the rows of scanning.

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
)

// cursorRow is a row of {cursors}.
type cursorRow struct {
	Network     string                `db:"network"`
	AtHeight    bits                  `db:"at_height"`
	AtHash      string                `db:"at_hash"`
	AtTime      moment                `db:"at_time"`
	TipHeight   bits                  `db:"tip_height"`
	TipHash     string                `db:"tip_hash"`
	TipTime     moment                `db:"tip_time"`
	FinalHeight bits                  `db:"final_height"`
	FinalHash   string                `db:"final_hash"`
	FinalTime   moment                `db:"final_time"`
	SafeHeight  bits                  `db:"safe_height"`
	SafeHash    string                `db:"safe_hash"`
	SafeTime    moment                `db:"safe_time"`
	Recent      document[[]chain.Ref] `db:"recent"`
	Stopped     prose                 `db:"stopped"`
	UpdatedAt   moment                `db:"updated_at"`
	Version     int64                 `db:"version"`
}

func cursorRowOf(from *scan.Cursor) cursorRow {
	return cursorRow{
		Network:     from.Network,
		AtHeight:    bits(from.At.Height),
		AtHash:      from.At.Hash,
		AtTime:      moment(from.At.Time),
		TipHeight:   bits(from.Tip.Height),
		TipHash:     from.Tip.Hash,
		TipTime:     moment(from.Tip.Time),
		FinalHeight: bits(from.Final.Height),
		FinalHash:   from.Final.Hash,
		FinalTime:   moment(from.Final.Time),
		SafeHeight:  bits(from.Safe.Height),
		SafeHash:    from.Safe.Hash,
		SafeTime:    moment(from.Safe.Time),
		Recent:      documentOf(from.Recent),
		Stopped:     prose(from.Stopped),
		UpdatedAt:   moment(from.UpdatedAt),
		Version:     from.Version,
	}
}

func (r *cursorRow) record() scan.Cursor {
	return scan.Cursor{
		Network:   r.Network,
		At:        blockRef(r.AtHeight, r.AtHash, r.AtTime),
		Tip:       blockRef(r.TipHeight, r.TipHash, r.TipTime),
		Final:     blockRef(r.FinalHeight, r.FinalHash, r.FinalTime),
		Safe:      blockRef(r.SafeHeight, r.SafeHash, r.SafeTime),
		Recent:    r.Recent.value,
		Stopped:   string(r.Stopped),
		UpdatedAt: time.Time(r.UpdatedAt),
		Version:   r.Version,
	}
}

// positionRow is a row of {positions}.
type positionRow struct {
	Network   string `db:"network"`
	Address   string `db:"address"`
	Read      string `db:"read_to"`
	UpdatedAt moment `db:"updated_at"`
	Version   int64  `db:"version"`
}

func positionRowOf(from *scan.Position) positionRow {
	return positionRow{
		Network:   from.Network,
		Address:   string(from.Address),
		Read:      from.Read,
		UpdatedAt: moment(from.UpdatedAt),
		Version:   from.Version,
	}
}

func (r *positionRow) record() scan.Position {
	return scan.Position{
		Network:   r.Network,
		Address:   chain.Address(r.Address),
		Read:      r.Read,
		UpdatedAt: time.Time(r.UpdatedAt),
		Version:   r.Version,
	}
}

// rangeRow is a row of {ranges}.
type rangeRow struct {
	ID        string                    `db:"id"`
	Network   string                    `db:"network"`
	Addresses document[[]chain.Address] `db:"addresses"`
	Next      bits                      `db:"next_height"`
	To        bits                      `db:"to_height"`
	CreatedAt moment                    `db:"created_at"`
	Version   int64                     `db:"version"`
}

func rangeRowOf(from *scan.Range) rangeRow {
	return rangeRow{
		ID:        from.ID,
		Network:   from.Network,
		Addresses: documentOf(from.Addresses),
		Next:      bits(from.Next),
		To:        bits(from.To),
		CreatedAt: moment(from.CreatedAt),
		Version:   from.Version,
	}
}

func (r *rangeRow) record() scan.Range {
	return scan.Range{
		ID:        r.ID,
		Network:   r.Network,
		Addresses: r.Addresses.value,
		Next:      uint64(r.Next),
		To:        uint64(r.To),
		CreatedAt: time.Time(r.CreatedAt),
		Version:   r.Version,
	}
}

// retryRow is a row of {retries}.
type retryRow struct {
	ID          string                   `db:"id"`
	Network     string                   `db:"network"`
	Transfer    document[chain.Transfer] `db:"transfer"`
	BlockHeight bits                     `db:"block_height"`
	BlockHash   string                   `db:"block_hash"`
	BlockTime   moment                   `db:"block_time"`
	Error       prose                    `db:"error"`
	Attempts    int                      `db:"attempts"`
	DueAt       moment                   `db:"due_at"`
	CreatedAt   moment                   `db:"created_at"`
	Version     int64                    `db:"version"`
}

func retryRowOf(from *scan.Retry) retryRow {
	return retryRow{
		ID:          from.ID,
		Network:     from.Network,
		Transfer:    documentOf(from.Transfer),
		BlockHeight: bits(from.Block.Height),
		BlockHash:   from.Block.Hash,
		BlockTime:   moment(from.Block.Time),
		Error:       prose(from.Error),
		Attempts:    from.Attempts,
		DueAt:       moment(from.DueAt),
		CreatedAt:   moment(from.CreatedAt),
		Version:     from.Version,
	}
}

func (r *retryRow) record() scan.Retry {
	return scan.Retry{
		ID:        r.ID,
		Network:   r.Network,
		Transfer:  r.Transfer.value,
		Block:     blockRef(r.BlockHeight, r.BlockHash, r.BlockTime),
		Error:     string(r.Error),
		Attempts:  r.Attempts,
		DueAt:     time.Time(r.DueAt),
		CreatedAt: time.Time(r.CreatedAt),
		Version:   r.Version,
	}
}
