package postgres

// This file sends a batch inside a host's transaction. database/sql does not give access to its connection,
// but pgx passes the connection to an argument that rewrites its query.

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// sendJoined runs a batch in a host's transaction, in one round trip, or two if the host has a tracer. A
// wrapped driver that does not pass arguments on gets the statements one by one.
func sendJoined(ctx context.Context, tx *sql.Tx, b sqlstore.Batch) ([]int64, error) {
	last := len(b.Texts) - 1
	if last > 0 {
		r := &joinedBatch{batch: b}

		result, err := tx.ExecContext(ctx, b.Texts[last], r)
		switch {
		case errors.Is(err, errSent):
			return r.changed, r.err
		case err == nil:
			n, err := result.RowsAffected()
			return append(r.changed, n), err
		case r.began:
			return r.changed, err
		}
	}

	return b.OneByOne(begin, func(text string, args []any) (int64, error) {
		result, err := tx.ExecContext(ctx, text, args...)
		if err != nil {
			return 0, err
		}

		return result.RowsAffected()
	})
}

// errSent ends the query of a joinedBatch that was sent whole. It does not mean that the transaction failed.
var errSent = errors.New("the batch was sent")

// joinedBatch is the only argument of its batch's last statement. pgx has it rewrite that, and gives it the
// connection.
type joinedBatch struct {
	batch   sqlstore.Batch
	began   bool
	changed []int64
	err     error
}

// RewriteQuery sends the batch and returns errSent. A tracer would take errSent for a failed query. With a
// tracer it sends the other statements, and returns the last one.
func (j *joinedBatch) RewriteQuery(
	ctx context.Context,
	c *pgx.Conn,
	_ string,
	_ []any,
) (text string, args []any, err error) {
	j.began = true
	all, last := j.batch, len(j.batch.Texts)-1

	if !traced(c) {
		j.changed, j.err = pipeline(ctx, c, all)
		return "", nil, errSent
	}

	j.changed, j.err = pipeline(ctx, c, sqlstore.Batch{Texts: all.Texts[:last], Args: all.Args[:last]})
	if j.err != nil {
		return "", nil, errSent
	}

	return all.Texts[last], all.Args[last], nil
}
