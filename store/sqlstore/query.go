package sqlstore

// This file builds the conditions of lists.

import (
	"math"
	"regexp"
	"slices"
	"strconv"
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
	// selective is set if another condition limits the list to few rows, or has an index in the order of the
	// list.
	selective bool
	// branches are alternatives, if any; a row satisfies one of them. See anyOf.
	branches []string
	// correlated is set if a condition looks at rows of another table.
	correlated bool
	// search restricts the list to records that begin with a text; nil for none. where then holds only other
	// conditions.
	search *search
}

// statement returns the query of the columns in an order, and its arguments. limit is in rows; 0
// returns all.
func (q *query) statement(columns, from, order string, limit int) (string, []any) {
	end := " " + order + atMost(limit)

	text := "SELECT " + columns + " FROM " + from + " WHERE " + q.where.String()
	if len(q.branches) == 0 {
		return text + end, q.args
	}
	// Each branch is ordered by itself: PostgreSQL merges ordered inputs, and would sort everything
	// otherwise.
	branches, all := make([]string, len(q.branches)), []any(nil)
	for i, branch := range q.branches {
		branches[i] = "SELECT * FROM (" + text + " AND " + branch + end + ") branch"

		all = append(all, q.args...)
	}

	return strings.Join(branches, " UNION ALL ") + end, all
}

// atMost returns the clause that limits the rows; 0 or less returns all. The limit is a literal. A plan for
// all arguments assumes that a limit argument is a tenth of all rows. PostgreSQL therefore planned the
// statement anew each time, which took a third of the time of a page.
func atMost(limit int) string {
	if limit <= 0 {
		return ""
	}

	return " LIMIT " + strconv.Itoa(limit)
}

// rowLimit returns the argument of LIMIT: a limit of 0 or less is no limit.
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

// of returns the conditions of an owner's list: newest first, after an id. objects are ids by which the list
// is filtered, each with an index of its own. If one is given, the owner's index is ruled out: without
// statistics a planner would walk all rows of the owner instead of the object's few.
func of(r *reader, o event.Owner, after string, objects ...string) *query {
	q := &query{selective: slices.ContainsFunc(objects, func(id string) bool { return id != "" })}

	account := "account_id"
	if q.selective {
		account = r.store.dialect.Unindexed(account)
	}

	q.has(account+" = ? AND livemode = ?", o.AccountID, o.Livemode)
	q.after("id", after)

	return q
}

// after adds the condition that a row comes after an id in the order of lists; "" comes before all.
func (q *query) after(column, id string) {
	if id != "" {
		q.bound(column, "<", id)
	}
}

// bound adds a condition that compares an id, in a column that the list walks.
func (q *query) bound(column, operator, id string) {
	if q.search == nil {
		q.has(column+" "+operator+" ?", id)
		return
	}

	q.search.ids = append(q.search.ids, idBound{operator, id})
}

// starts restricts an owner's list after an id to rows in which one of the columns starts with the text; an
// empty text changes nothing. No condition may have been added before. The columns hold lower-case text.
func (q *query) starts(r *reader, table string, o event.Owner, after, text string, columns ...string) {
	if text == "" {
		return
	}

	s := newSearch(r.store.dialect, table, o, text, columns...)
	if q.selective {
		s.matches(q)
		return
	}

	*q = query{search: s}
	q.after("id", after)
}

// is adds the condition that a column has a value, unless the value is empty.
func (q *query) is(column, value string) {
	if value != "" {
		q.has(column+" = ?", value)
	}
}

// in adds the condition that a column has one of the values; there should be few.
func (q *query) in(column string, values []string) {
	condition, args, err := sqlx.In(column+" IN (?)", values)
	if err != nil {
		condition = "1 = 0" // no values: no row has one
	}

	q.has(condition, args...)
}

// word matches values that can be written into a statement without quoting.
var word = regexp.MustCompile(`^[a-z][a-z0-9_.-]*$`)

// oneOf adds the condition that a column has one of the values, unless there are none. Statuses and the like
// are literals of the statement. A database plans a prepared statement once for all arguments: it cannot know
// whether a status is rare, and would read all rows of an account to find a few. In a search, no index of the
// column is used: a value may be frequent and the text rare.
func oneOf[S ~string](q *query, column string, values []S) {
	if len(values) == 0 {
		return
	}

	if q.search != nil {
		column = q.search.dialect.Unindexed(column)
	}

	all, words := distinct(values)
	if !words {
		q.in(column, all)
		return
	}

	q.has(column + " IN ('" + strings.Join(all, "', '") + "')")
}

// anyOf is oneOf for a column with an index that has the owner's rows of each value in the order of the list.
// For several values it makes one query each, which the database merges: it reads only the rows that it
// returns, even if the values are rare.
func anyOf[S ~string](q *query, column string, values []S) {
	all, words := distinct(values)
	if q.selective || q.search != nil || len(all) < 2 || !words {
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

// made adds the condition that the object of an id was created at or after one time and before another; a
// zero time is no bound. Ids are in the order of creation, so it is a range of the index that the list walks.
func (q *query) made(column string, idAt func(time.Time) string, after, before time.Time) {
	if !after.IsZero() {
		q.bound(column, ">=", idAt(after))
	}

	if !before.IsZero() {
		q.bound(column, "<", idAt(before))
	}
}
