package sqlstore

// This file lists records that begin with a text: an order id, an address, a name. Indexes of texts are in
// the order of the text, but a page is in the order of ids. So the first step reads ids by the texts'
// indexes, up to a limit. If those are all, they give the page. If more match, the second step looks at the
// owner's newest records, which usually fill a page. If they do not, because the matches are old, the third
// step reads all matching ids, and the page's records.

import (
	"context"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/event"
)

const (
	// fewMatches is how many ids are read before the newest records are looked at.
	fewMatches = 500
	// newestWalked is how many of the newest records are looked at.
	newestWalked = 2000
)

// search selects an owner's records that begin with a text.
type search struct {
	dialect *Dialect
	table   string
	owner   event.Owner
	// from and to bound the texts, in lower case.
	from, to string
	columns  []string
	// ids are the bounds of the ids on the page.
	ids []idBound
}

// idBound compares an id with another one: "<" or ">=".
type idBound struct{ operator, id string }

func newSearch(d *Dialect, table string, o event.Owner, text string, columns ...string) *search {
	from := strings.ToLower(text)

	return &search{
		dialect: d,
		table:   table,
		owner:   o,
		from:    from,
		to:      from + "\U0010FFFF",
		columns: columns,
	}
}

// searchPage returns a page of the records that begin with the text of a query and satisfy its conditions.
// limit is in rows; 0 returns all.
func searchPage[T any](ctx context.Context, r *reader, t *table[T], q *query, limit int) ([]T, error) {
	if err := r.flushTables(ctx, t.name); err != nil {
		return nil, err
	}

	s := q.search

	ids, err := s.firstIDs(ctx, r)
	if err != nil || len(ids) == 0 {
		return nil, err
	}

	few := len(ids) <= fewMatches
	if few && q.where.Len() == 0 {
		return among(
			ctx, r, t, "id", s.newestOf(ids, limit), " ORDER BY id DESC", "account_id = ?", s.owner.AccountID,
		)
	}

	// Citus takes no correlated subquery of rows that come from a subquery.
	if !few && !q.correlated {
		text, args := s.amongNewest(q, t.columns, limit)

		page, err := rows(ctx, r, t, r.store.dialect.text(text), args)
		if err != nil || len(page) == limit {
			return page, err
		}
	}

	text, args := s.byText(q, t.columns, limit)

	return rows(ctx, r, t, r.store.dialect.text(text), args)
}

// firstIDs returns the ids of all records of the owner that match, or more than fewMatches of them.
func (s *search) firstIDs(ctx context.Context, r *reader) (ids []string, err error) {
	all := &sqlText{}

	for i, column := range s.columns {
		if i > 0 {
			all.add(" UNION ALL ")
		}

		all.add("SELECT id FROM (SELECT id FROM {" + s.table + "} WHERE ")
		s.begins(all, column)
		all.add(atMost(fewMatches+1) + ") found")
	}

	all.add(atMost(fewMatches + 1))

	err = r.retry(ctx, func() error {
		if err := r.ready(ctx); err != nil {
			return r.readError(ctx, err, s.table)
		}

		ids = nil

		err := sqlx.SelectContext(ctx, r.on, &ids, s.dialect.text(all.String()), s.dialect.args(all.args)...)
		if err != nil {
			return r.readError(ctx, err, s.table)
		}

		return nil
	})

	return ids, err
}

// newestOf returns the ids of a page.
func (s *search) newestOf(ids []string, limit int) []string {
	ids = slices.DeleteFunc(ids, func(id string) bool {
		return slices.ContainsFunc(s.ids, func(b idBound) bool { return (id < b.id) != (b.operator == "<") })
	})

	slices.Sort(ids)
	ids = slices.Compact(ids)

	if limit > 0 {
		ids = ids[max(0, len(ids)-limit):]
	}

	return ids
}

// amongNewest returns the query of a page of the newest records, and its arguments.
func (s *search) amongNewest(filters *query, columns string, limit int) (string, []any) {
	all := &sqlText{}

	all.add(
		"SELECT "+columns+" FROM (SELECT * FROM {"+s.table+"} WHERE account_id = ? AND livemode = ?",
		s.owner.AccountID, s.owner.Livemode,
	)
	s.within(all, "id")
	all.add(" ORDER BY id DESC" + atMost(newestWalked) + ") i WHERE ")

	text := &query{}
	s.matches(text)
	all.add(text.where.String(), text.args...)

	all.and(filters)
	all.add(" ORDER BY id DESC" + atMost(limit))

	return all.String(), all.args
}

// byText returns the query of a page by the indexes of the texts, and its arguments. It reads them from their
// ends: if texts grow with time, a sort that keeps one page is soon done.
func (s *search) byText(filters *query, columns string, limit int) (string, []any) {
	all, unordered := &sqlText{}, s.dialect.Unindexed("id") // so that no index is walked in the order of ids

	all.add("SELECT " + qualified("i.", columns) + " FROM (")

	for i, column := range s.columns {
		if i > 0 {
			all.add(" UNION ")
		}

		order := column + " DESC, id DESC"
		if column == "id" {
			order = "id DESC"
		}

		all.add("SELECT id, account_id FROM (SELECT id, account_id FROM (")
		all.add("SELECT id, account_id FROM {" + s.table + "} i WHERE ")
		s.begins(all, column)
		s.within(all, unordered)
		all.and(filters)
		all.add(" ORDER BY " + order + ") found ORDER BY " + unordered + " DESC" + atMost(limit) + ") page")
	}

	all.add(") w " + s.dialect.Each(s.table, "i", "i.id = w.id AND i.account_id = w.account_id"))
	all.add(" WHERE i.account_id = ? ORDER BY w.id DESC"+atMost(limit), s.owner.AccountID)

	return all.String(), all.args
}

// matches adds the condition that a record begins with the text, for queries whose other conditions leave few
// rows.
func (s *search) matches(q *query) {
	var (
		ranges []string
		args   []any
	)

	for _, column := range s.columns {
		ranges, args = append(ranges, column+" >= ? AND "+column+" < ?"), append(args, s.from, s.to)
	}

	q.has("("+strings.Join(ranges, " OR ")+")", args...)
}

// begins adds the condition that a record of the owner begins with the text in a column, as a range of its index.
func (s *search) begins(all *sqlText, column string) {
	all.add(
		"account_id = ? AND livemode = ? AND "+column+" >= ? AND "+column+" < ?",
		s.owner.AccountID, s.owner.Livemode, s.from, s.to,
	)

	if column != "id" {
		all.add(" AND " + column + " <> ''")
	}
}

// within adds the bounds of the ids.
func (s *search) within(all *sqlText, column string) {
	for _, b := range s.ids {
		all.add(" AND "+column+" "+b.operator+" ?", b.id)
	}
}

// sqlText is a statement in the making, and its arguments.
type sqlText struct {
	strings.Builder
	args []any
}

func (t *sqlText) add(text string, args ...any) {
	t.WriteString(text)
	t.args = append(t.args, args...)
}

// and adds the conditions of a query, if there are any.
func (t *sqlText) and(q *query) {
	if q.where.Len() > 0 {
		t.add(" AND "+q.where.String(), q.args...)
	}
}
