package sqlstore

import (
	"context"

	"github.com/jmoiron/sqlx"
)

// This file runs reads of one row by its key.

// row runs a query for a table's columns and returns the first record; ok is false when there is none.
func row[T any](
	ctx context.Context,
	r *reader,
	t *table[T],
	text string,
	args []any,
) (record T, ok bool, err error) {
	var on queryer = r.on
	if pool, ok := r.on.(*sqlx.DB); ok && pool == r.store.read && r.store.writer != nil {
		on = prepared{r.store}
	}

	found, err := rowsOn(ctx, r, on, t, text, args)
	if err != nil || len(found) == 0 {
		return record, false, err
	}

	return found[0], true, nil
}

// prepared runs queries on the store's own pool by prepared statements that are kept, for drivers that keep
// none themselves: parsing and planning is much of the cost of a read by key. There are as many as templates.
type prepared struct{ store *sqlStore }

func (p prepared) QueryxContext(ctx context.Context, text string, args ...any) (*sqlx.Rows, error) {
	if kept, ok := p.store.keyed.Load(text); ok {
		return kept.(*sqlx.Stmt).QueryxContext(ctx, args...)
	}

	statement, err := p.store.read.PreparexContext(ctx, text)
	if err != nil {
		return nil, err
	}

	kept, other := p.store.keyed.LoadOrStore(text, statement)
	if other {
		_ = statement.Close()
	}

	return kept.(*sqlx.Stmt).QueryxContext(ctx, args...)
}
