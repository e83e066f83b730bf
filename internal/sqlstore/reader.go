package sqlstore

// This file reads: one row by its key, or the rows of a query.

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// reader reads on a pool, or inside a transaction what that wrote too.
type reader struct {
	store *Store
	on    interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
	tx *transaction // nil outside of one
}

// look returns the row of a key; ok is false when there is none. locked locks it until the transaction ends.
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

	template := t.get

	if locked {
		if err := r.tx.begin(ctx); err != nil {
			return record, false, err
		}

		template += r.store.dialect.Lock
	}

	found, err := rows(ctx, r, t, r.store.text(template), k)
	if err != nil {
		return record, false, err
	}

	if len(found) == 0 {
		if r.tx != nil {
			if r.tx.absent == nil {
				r.tx.absent = map[string]bool{}
			}

			r.tx.absent[t.slot(k)] = true
		}

		return record, false, nil
	}

	return found[0], true, nil
}

// get returns the row of an id, or fault.NotFound when there is none or may does not agree.
func get[T any](ctx context.Context, r *reader, t *table[T], id string, may func(*T) bool) (T, error) {
	record, ok, err := look(ctx, r, t, false, id)
	if err != nil {
		return record, err
	}

	if !ok || may != nil && !may(&record) {
		var none T
		return none, fault.Missing(t.object, id)
	}

	return record, nil
}

// several returns the rows of those ids that exist.
func several[T any](ctx context.Context, r *reader, t *table[T], ids []string) ([]T, error) {
	return among(ctx, r, t, t.cols[0].name, ids, " ORDER BY "+t.cols[0].name, "1 = 1")
}

// among returns the rows under a condition whose column has one of the values.
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

	if err := r.settle(ctx, t.name); err != nil {
		return nil, err
	}

	template := r.store.dialect.Among(t.columns, t.name, condition, column) + order

	return rows(ctx, r, t, r.store.text(template), append([]any{values}, args...))
}

// rows runs a query for a table's columns.
func rows[T any](ctx context.Context, r *reader, t *table[T], text string, args []any) ([]T, error) {
	found, err := r.query(ctx, text, args)
	if err != nil {
		return nil, r.failed(ctx, err, t.object)
	}
	defer found.Close()

	var out []T

	for found.Next() {
		var record T
		if err := found.Scan(t.targets(&record)...); err != nil {
			return nil, r.failed(ctx, err, t.object)
		}

		out = append(out, record)
	}

	if err := found.Err(); err != nil {
		return nil, r.failed(ctx, err, t.object)
	}

	return out, nil
}

func (r *reader) query(ctx context.Context, text string, args []any) (*sql.Rows, error) {
	if r.tx == nil {
		if err := r.store.ready(ctx); err != nil {
			return nil, err
		}
	}

	return r.on.QueryContext(ctx, text, r.store.dialect.args(args)...)
}

func (r *reader) failed(ctx context.Context, err error, object string) error {
	if r.tx != nil {
		return r.tx.fail(ctx, err, "read "+object)
	}

	return r.store.explain(ctx, err, "read "+object)
}

// settle sends what the transaction buffered if that changes one of the tables, so that a query of
// them sees it.
func (r *reader) settle(ctx context.Context, tables ...string) error {
	if r.tx == nil {
		return nil
	}

	if slices.ContainsFunc(tables, func(t string) bool { return r.tx.dirty[t] }) {
		return r.tx.flush(ctx)
	}

	return r.tx.usable(ctx)
}

// count runs a query of a table for one number.
func (r *reader) count(ctx context.Context, table, template string, args ...any) (int, error) {
	if err := r.settle(ctx, table); err != nil {
		return 0, err
	}

	found, err := r.query(ctx, r.store.text(template), args)
	if err != nil {
		return 0, r.failed(ctx, err, "count")
	}
	defer found.Close()

	if !found.Next() {
		return 0, r.failed(ctx, errors.Join(errors.New("a count answered no row"), found.Err()), "count")
	}

	var n int
	if err := found.Scan(&n); err != nil {
		return 0, r.failed(ctx, err, "count")
	}

	return n, nil
}

// list runs a query of a table under the conditions of q. limit 0: all.
func list[T any](
	ctx context.Context,
	r *reader,
	t *table[T],
	q *query,
	order string,
	limit int,
) ([]T, error) {
	if err := r.settle(ctx, t.name); err != nil {
		return nil, err
	}

	text, args := q.statement(t.columns, "{"+t.name+"}", order, limit)

	return rows(ctx, r, t, r.store.dialect.text(text), args)
}

// newest is the order of lists.
const newest = "ORDER BY id DESC"

// query is the conditions of a list.
type query struct {
	where strings.Builder
	args  []any
	// branches are conditions of which a row fulfils one, if there are any; see anyOf.
	branches []string
}

// statement is the query of the columns, in an order, with its arguments. limit 0: all.
func (q *query) statement(columns, from, order string, limit int) (string, []any) {
	end, args := " "+order, slices.Clip(q.args)
	if limit > 0 {
		end += " LIMIT ?"

		args = append(args, int64(limit))
	}

	text := "SELECT " + columns + " FROM " + from + " WHERE " + q.where.String()
	if len(q.branches) == 0 {
		return text + end, args
	}
	// Each branch is ordered by itself: PostgreSQL merges what it knows to be in order, and sorts
	// the whole otherwise.
	branches, all := make([]string, len(q.branches)), []any(nil)
	for i, branch := range q.branches {
		branches[i] = "SELECT * FROM (" + text + " AND " + branch + end + ") branch"

		all = append(all, args...)
	}

	return strings.Join(branches, " UNION ALL ") + end, append(all, args[len(q.args):]...)
}

// has adds a condition.
func (q *query) has(condition string, args ...any) {
	if q.where.Len() > 0 {
		q.where.WriteString(" AND ")
	}

	q.where.WriteString(condition)
	q.args = append(q.args, args...)
}

// of starts the conditions of an owner's list: newest first, after an id. objects are the ids of
// objects that the list may be narrowed to, each with an index of its own. When one is given, the
// owner is only compared: a planner that knows nothing of the rows would rather walk all those of
// the owner than the few of that object.
func of(o event.Owner, after string, objects ...string) *query {
	q := &query{}

	account := "account_id"
	if slices.ContainsFunc(objects, func(id string) bool { return id != "" }) {
		account += " || ''" // what no index holds
	}

	q.has(account+" = ? AND livemode = ?", o.AccountID, o.Livemode)

	if after != "" {
		q.has("id < ?", after)
	}

	return q
}

// is adds the condition that a column has a value, unless that is empty.
func (q *query) is(column, value string) {
	if value != "" {
		q.has(column+" = ?", value)
	}
}

// in adds the condition that a column has one of the values.
func (q *query) in(r *reader, column string, values []string) {
	if len(values) == 1 {
		q.has(column+" = ?", values[0])
		return
	}

	q.has(r.store.dialect.In(column), values)
}

// word is a value that may stand in a statement as it is.
var word = regexp.MustCompile(`^[a-z][a-z0-9_.-]*$`)

// oneOf adds the condition that a column has one of the values, unless there are none. Statuses and
// the like stand in the statement itself: a database that plans a prepared statement once for all
// values cannot know whether one that comes as an argument is rare, and would read a whole
// account's rows in search of a few.
func oneOf[S ~string](q *query, r *reader, column string, values []S) {
	if len(values) == 0 {
		return
	}

	all, words := distinct(values)
	if !words {
		q.in(r, column, all)
		return
	}

	q.has(column + " IN ('" + strings.Join(all, "', '") + "')")
}

// anyOf is oneOf for a column by which an index has the owner's rows, each value's in the order of
// the list. Several are as many queries that the database merges: it reads what it answers, however
// rare the values are. narrow says that the list is narrowed to fewer rows by something else.
func anyOf[S ~string](q *query, r *reader, column string, values []S, narrow bool) {
	all, words := distinct(values)
	if narrow || len(all) < 2 || !words {
		oneOf(q, r, column, values)
		return
	}

	for _, v := range all {
		q.branches = append(q.branches, column+" = '"+v+"'")
	}
}

// distinct returns values once each, sorted; words says that each may stand in a statement as it is.
func distinct[S ~string](values []S) (all []string, words bool) {
	all = slices.Compact(slices.Sorted(slices.Values(texts(values))))
	return all, !slices.ContainsFunc(all, func(v string) bool { return !word.MatchString(v) })
}

// texts are values as plain strings.
func texts[S ~string](values []S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}

	return out
}

// within adds the condition that a column lies in the half-open stretch, each end of which may be open.
func (q *query) within(column string, after, before time.Time) {
	if !after.IsZero() {
		q.has(column+" >= ?", after)
	}

	if !before.IsZero() {
		q.has(column+" < ?", before)
	}
}

// starts adds the condition that one of the columns, all of which hold lower case, starts with the
// text. Each branch is a range of an index of (owner, column).
func (q *query) starts(table string, o event.Owner, text string, columns ...string) {
	if text == "" {
		return
	}

	from := strings.ToLower(text)
	to := from + "\U0010FFFF"

	var (
		branches []string
		args     []any
	)

	for _, c := range columns {
		branch := "SELECT id FROM {" + table + "} WHERE account_id = ? AND livemode = ? AND " + c +
			" >= ? AND " + c + " < ?"
		if c != "id" {
			branch += " AND " + c + " <> ''"
		}

		branches = append(branches, branch)
		args = append(args, o.AccountID, o.Livemode, from, to)
	}

	q.has("id IN ("+strings.Join(branches, " UNION ALL ")+")", args...)
}
