package sqlstore

// This file reads one row by its key, or the rows of a query.

import (
	"context"
	"database/sql"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// reader reads committed rows on a pool. Inside a transaction it also reads the transaction's own writes.
type reader struct {
	store *sqlStore
	on    sqlx.QueryerContext
	tx    *transaction // nil outside of one
}

// look returns the row of a key; ok is false when there is none. locked locks the row until the transaction
// ends. If the key is an id, the account may follow it, so that a distributed database asks one machine.
func look[T any](
	ctx context.Context,
	r *reader,
	t *table[T],
	locked bool,
	k ...any,
) (record T, ok bool, err error) {
	if r.tx != nil {
		if err := r.tx.usable(ctx); err != nil {
			return record, false, err
		}

		if r.tx.partial == t.name {
			if err := r.tx.flush(ctx); err != nil {
				return record, false, err
			}
		}

		if w := r.tx.rows[t.slot(k)]; w != nil {
			if w.values == nil {
				return record, false, nil
			}

			record, err = t.fill(w.values)

			return record, err == nil, err
		}
	}

	if locked {
		if err := r.tx.begin(ctx); err != nil {
			return record, false, err
		}
	}

	record, ok, err = lookHome(ctx, r, t, locked, k)
	if err == nil && !ok && r.tx != nil {
		if r.tx.absent == nil {
			r.tx.absent = map[string]bool{}
		}

		r.tx.absent[t.slot(k)] = true
	}

	return record, ok, err
}

// lookHome looks a key up on the machine of its account if it is known, and otherwise on all.
func lookHome[T any](
	ctx context.Context,
	r *reader,
	t *table[T],
	locked bool,
	k []any,
) (record T, ok bool, err error) {
	lock := ""
	if locked {
		lock = r.store.dialect.Lock
	}

	if len(k) > t.slots {
		return row(ctx, r, t, r.store.text(t.getOfAccount+lock), k)
	}

	if account := r.store.homes.of(t.name, k[0]); account != "" {
		record, ok, err = row(ctx, r, t, r.store.text(t.getOfAccount+lock), []any{k[0], account})
		if err != nil || ok {
			return record, ok, err
		}

		r.store.homes.forget(t.name, k[0])
	}

	return row(ctx, r, t, r.store.text(t.get+lock), k)
}

// get returns the row of an id, or fault.NotFound when there is none.
func get[T any](ctx context.Context, r *reader, t *table[T], id string) (T, error) {
	record, ok, err := look(ctx, r, t, false, id)
	if err != nil {
		return record, err
	}

	if !ok {
		var none T
		return none, fault.Missing(t.object, id)
	}

	return record, nil
}

// owned returns the row of an id that belongs to an owner, or fault.NotFound.
func owned[T any](
	ctx context.Context,
	r *reader,
	t *table[T],
	owner event.Owner,
	id string,
	ownerOf func(T) event.Owner,
) (T, error) {
	record, ok, err := look(ctx, r, t, false, id, owner.AccountID)
	if err != nil {
		return record, err
	}

	if !ok || ownerOf(record) != owner {
		var none T
		return none, fault.Missing(t.object, id)
	}

	return record, nil
}

// several returns the existing rows of ids.
func several[T any](ctx context.Context, r *reader, t *table[T], ids []string) ([]T, error) {
	column := t.cols[0].name
	order := " ORDER BY " + column

	if accounts := r.store.homes.all(t.name, ids...); len(accounts) > 0 && len(accounts) <= mostAccounts {
		ids = slices.Compact(slices.Sorted(slices.Values(ids)))
		condition, args := ofAccounts(accounts)

		found, err := among(ctx, r, t, column, ids, order, condition, args...)
		if err != nil || len(found) == len(ids) {
			return found, err
		}

		for _, id := range ids {
			r.store.homes.forget(t.name, id)
		}
	}

	return among(ctx, r, t, column, ids, order, "1 = 1")
}

// amongOf is among for values that are ids of another table, whose rows are of the same account. If the
// accounts are known, only their machines are asked.
func amongOf[T any](
	ctx context.Context,
	r *reader,
	t *table[T],
	column, parent string,
	ids []string,
) ([]T, error) {
	return amongHomes(ctx, r, t, r.store.homes.all(parent, ids...), column, ids, "", "1 = 1")
}

// amongHomes is among for rows of some accounts; without accounts, or with too many, it asks for any. A
// single value is compared directly.
func amongHomes[T any](
	ctx context.Context,
	r *reader,
	t *table[T],
	accounts []string,
	column string,
	values []string,
	order, condition string,
	args ...any,
) ([]T, error) {
	if len(accounts) > 0 && len(accounts) <= mostAccounts {
		of, more := ofAccounts(accounts)
		condition, args = condition+" AND "+of, append(args, more...)
	}

	if len(values) != 1 {
		return among(ctx, r, t, column, values, " "+order, condition, args...)
	}

	q := &query{}
	q.has(condition+" AND "+column+" = ?", append(args, values[0])...)

	return list(ctx, r, t, q, order, 0)
}

// among returns the rows that satisfy a condition and whose column has one of the values.
func among[T any](
	ctx context.Context,
	r *reader,
	t *table[T],
	column string,
	values []string,
	order, condition string,
	args ...any,
) ([]T, error) {
	if len(values) == 0 {
		return nil, nil
	}

	if err := r.flushTables(ctx, t.name); err != nil {
		return nil, err
	}

	template := r.store.dialect.Among(t.columns, t.name, condition, column) + order

	return rows(ctx, r, t, r.store.text(template), append([]any{values}, args...))
}

// rows runs a query for a table's columns and returns the records.
func rows[T any](
	ctx context.Context,
	r *reader,
	t *table[T],
	text string,
	args []any,
) (records []T, err error) {
	return rowsOn(ctx, r, r.on, t, text, args)
}

// queryer runs a query.
type queryer interface {
	QueryxContext(ctx context.Context, text string, args ...any) (*sqlx.Rows, error)
}

// rowsOn is rows by a queryer.
func rowsOn[T any](
	ctx context.Context,
	r *reader,
	on queryer,
	t *table[T],
	text string,
	args []any,
) (records []T, err error) {
	err = r.retry(ctx, func() error {
		records, err = rowsOnce(ctx, r, on, t, text, args)
		return err
	})

	return records, err
}

// retry calls a read until it ends without a conflict. Inside a transaction it calls it once: Update runs the
// closure again.
func (r *reader) retry(ctx context.Context, read func() error) error {
	if r.tx != nil {
		return read()
	}

	return r.store.retry(ctx, func(bool) error { return read() })
}

func rowsOnce[T any](
	ctx context.Context,
	r *reader,
	on queryer,
	t *table[T],
	text string,
	args []any,
) ([]T, error) {
	if err := r.ready(ctx); err != nil {
		return nil, r.readError(ctx, err, t.object)
	}

	found, err := on.QueryxContext(ctx, text, r.store.dialect.args(args)...)
	if err != nil {
		return nil, r.readError(ctx, err, t.object)
	}
	defer found.Close()

	// One row at a time, into the same fields. sqlx finds the fields of each row anew, which cost 3 to 8 % of
	// a page (BenchmarkScan). Select would also hold and copy all rows beside the records.
	var (
		out     []T
		record  T
		targets = t.targets(&record)
	)

	for found.Next() {
		if err := found.Scan(targets...); err != nil {
			return nil, r.readError(ctx, err, t.object)
		}

		remember(r.store.homes, t, &record)

		out = append(out, record)
	}

	if err := found.Err(); err != nil {
		return nil, r.readError(ctx, err, t.object)
	}

	return out, nil
}

// ready checks the schema before a read outside of transactions.
func (r *reader) ready(ctx context.Context) error {
	if r.tx != nil {
		return nil
	}

	return r.store.ready(ctx)
}

func (r *reader) query(ctx context.Context, text string, args []any) (*sql.Rows, error) {
	if err := r.ready(ctx); err != nil {
		return nil, err
	}

	return r.on.QueryContext(ctx, text, r.store.dialect.args(args)...)
}

func (r *reader) readError(ctx context.Context, err error, object string) error {
	if r.tx != nil {
		return r.tx.breakWith(ctx, err, "read "+object)
	}

	return r.store.explain(ctx, err, "read "+object)
}

// flushTables sends the transaction's buffered writes if they change one of the tables, so that a query
// sees them.
func (r *reader) flushTables(ctx context.Context, tables ...string) error {
	if r.tx == nil {
		return nil
	}

	if slices.ContainsFunc(tables, func(t string) bool { return slices.Contains(r.tx.dirty, t) }) {
		return r.tx.flush(ctx)
	}

	return r.tx.usable(ctx)
}

// count runs a query of a table that returns one number.
func (r *reader) count(ctx context.Context, table, template string, args ...any) (n int, err error) {
	if err := r.flushTables(ctx, table); err != nil {
		return 0, err
	}

	err = r.retry(ctx, func() error {
		if err := r.ready(ctx); err != nil {
			return r.readError(ctx, err, "count")
		}

		text := r.store.text(template)
		if err := sqlx.GetContext(ctx, r.on, &n, text, r.store.dialect.args(args)...); err != nil {
			return r.readError(ctx, err, "count")
		}

		return nil
	})

	return n, err
}

// list returns a table's rows under the conditions of q. limit is in rows; 0 returns all.
func list[T any](
	ctx context.Context,
	r *reader,
	t *table[T],
	q *query,
	order string,
	limit int,
) ([]T, error) {
	if q.search != nil {
		return searchPage(ctx, r, t, q, limit)
	}

	if err := r.flushTables(ctx, t.name); err != nil {
		return nil, err
	}

	text, args := q.statement(t.columns, "{"+t.name+"} i", order, limit)

	return rows(ctx, r, t, r.store.dialect.text(text), args)
}
