package sqlstore

// This file builds the conditions of lists.

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/event"
)

// newest is the order of lists.
const newest = "ORDER BY id DESC"

// query holds the conditions of a list.
type query struct {
	where strings.Builder
	args  []any
	// branches are alternatives of which a row satisfies one, if there are any; see anyOf.
	branches []string
}

// statement returns the query of the columns in an order, and its arguments. limit is in rows; 0
// returns all.
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
	// Each branch is ordered by itself: PostgreSQL merges ordered inputs, and sorts everything
	// otherwise.
	branches, all := make([]string, len(q.branches)), []any(nil)
	for i, branch := range q.branches {
		branches[i] = "SELECT * FROM (" + text + " AND " + branch + end + ") branch"

		all = append(all, args...)
	}

	return strings.Join(branches, " UNION ALL ") + end, append(all, args[len(q.args):]...)
}

// rowLimit returns the argument of LIMIT: a limit of 0 or less is none.
func rowLimit(limit int) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}

	return int64(limit)
}

// has adds a condition.
func (q *query) has(condition string, args ...any) {
	if q.where.Len() > 0 {
		q.where.WriteString(" AND ")
	}

	q.where.WriteString(condition)
	q.args = append(q.args, args...)
}

// of returns the conditions of an owner's list: newest first, after an id. objects are ids by which
// the list is filtered, each with an index of its own. When one is given, the owner's index is ruled
// out: without statistics a planner would walk all rows of the owner instead of the object's few.
func of(r *reader, o event.Owner, after string, objects ...string) *query {
	q := &query{}

	account := "account_id"
	if slices.ContainsFunc(objects, func(id string) bool { return id != "" }) {
		account = r.store.dialect.Unindexed(account)
	}

	q.has(account+" = ? AND livemode = ?", o.AccountID, o.Livemode)

	if after != "" {
		q.has("id < ?", after)
	}

	return q
}

// is adds the condition that a column has a value, unless the value is empty.
func (q *query) is(column, value string) {
	if value != "" {
		q.has(column+" = ?", value)
	}
}

// in adds the condition that a column has one of the values, which are few.
func (q *query) in(column string, values []string) {
	condition, args, err := sqlx.In(column+" IN (?)", values)
	if err != nil {
		condition = "1 = 0" // no values: no row has one
	}

	q.has(condition, args...)
}

// word matches values that may be written into a statement without quoting rules.
var word = regexp.MustCompile(`^[a-z][a-z0-9_.-]*$`)

// oneOf adds the condition that a column has one of the values, unless there are none. Statuses and the
// like are literals of the statement. A database plans a prepared statement once for all arguments: it
// cannot know whether a status is rare, and would read all rows of an account to find a few.
func oneOf[S ~string](q *query, column string, values []S) {
	if len(values) == 0 {
		return
	}

	all, words := distinct(values)
	if !words {
		q.in(column, all)
		return
	}

	q.has(column + " IN ('" + strings.Join(all, "', '") + "')")
}

// anyOf is oneOf for a column by which an index has the owner's rows, each value's in the order of
// the list. Several values are as many queries that the database merges: it reads only what it returns,
// however rare the values are. filtered says that another condition already limits the list to few rows.
func anyOf[S ~string](q *query, column string, values []S, filtered bool) {
	all, words := distinct(values)
	if filtered || len(all) < 2 || !words {
		oneOf(q, column, values)
		return
	}

	for _, v := range all {
		q.branches = append(q.branches, column+" = '"+v+"'")
	}
}

// distinct returns each value once, sorted; words reports whether all match word.
func distinct[S ~string](values []S) (all []string, words bool) {
	all = slices.Compact(slices.Sorted(slices.Values(texts(values))))
	return all, !slices.ContainsFunc(all, func(v string) bool { return !word.MatchString(v) })
}

// texts returns the values as plain strings.
func texts[S ~string](values []S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}

	return out
}

// within adds the condition that a column is at or after one time and before another; a zero time is no
// bound.
func (q *query) within(column string, after, before time.Time) {
	if !after.IsZero() {
		q.has(column+" >= ?", after)
	}

	if !before.IsZero() {
		q.has(column+" < ?", before)
	}
}

// made adds the condition that what an id names was created at or after one time and before another; a zero
// time is no bound. Ids are in the order of creation, so it is a range of the index that the list walks.
func (q *query) made(column string, bound func(time.Time) string, after, before time.Time) {
	if !after.IsZero() {
		q.has(column+" >= ?", bound(after))
	}

	if !before.IsZero() {
		q.has(column+" < ?", bound(before))
	}
}

// starts adds the condition that one of the columns, which hold lower-case text, starts with the text.
// Each branch is a range of an index of (owner, column).
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
