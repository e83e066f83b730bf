package kv

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
)

var (
	cursors = newTable(
		20, "cursor",
		func(c *scan.Cursor) key { return keyOf(c.Network) },
		func(c *scan.Cursor) *int64 { return &c.Version },
	)

	positions = newTable(
		23, "position",
		func(p *scan.Position) key { return keyOf(p.Network, p.Address) },
		func(p *scan.Position) *int64 { return &p.Version },
	)

	ranges = newTable(
		21, "back-fill range",
		func(r *scan.Range) key { return keyOf(r.ID) },
		func(r *scan.Range) *int64 { return &r.Version },
	)
	rangesByNetwork = ranges.ordered(1, func(r *scan.Range) key { return keyOf(r.Network) })

	retries = newTable(
		22, "retry",
		func(r *scan.Retry) key { return keyOf(r.ID) },
		func(r *scan.Retry) *int64 { return &r.Version },
	)
	retriesByNetwork = retries.ordered(1, func(r *scan.Retry) key { return keyOf(r.Network) })
)

func (r *reader) Cursor(ctx context.Context, network string) (scan.Cursor, bool, error) {
	return try(ctx, r, cursors, cursors.at(network))
}

func (r *reader) Positions(
	ctx context.Context,
	network string,
	wanted []chain.Address,
) ([]scan.Position, error) {
	keys := make([]key, len(wanted))
	for i, address := range wanted {
		keys[i] = positions.at(network, address)
	}

	return several(ctx, r, positions, keys)
}

func (r *reader) Ranges(ctx context.Context, network string, limit int) ([]scan.Range, error) {
	return list(ctx, r, rangesByNetwork, keyOf(network), window[scan.Range]{limit: limit})
}

func (r *reader) Retries(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]scan.Retry, error) {
	isDue := func(x *scan.Retry) bool { return !x.DueAt.After(now) }

	return list(ctx, r, retriesByNetwork, keyOf(network), window[scan.Retry]{limit: limit, match: isDue})
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
	return remove(ctx, tx, ranges, ranges.at(id))
}

func (tx *transaction) PutRetry(ctx context.Context, r *scan.Retry) error {
	return put(ctx, tx, retries, r)
}

func (tx *transaction) DeleteRetry(ctx context.Context, id string) error {
	return remove(ctx, tx, retries, retries.at(id))
}
