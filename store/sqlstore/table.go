package sqlstore

// This file holds tables: the statements made once from a row's columns.

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// table says how records T of one kind are stored as rows R. Its statements are templates; see Store.text.
type table[T, R any] struct {
	name   string // without prefix
	object string // the word for it in errors
	keys   int    // so many columns, from the first, are the primary key
	slots  int    // so many of these name a row: the id alone, where the account follows it
	cols   []column
	// network and address are the columns of the deposit address that a row is about; 0 where it is about none.
	network, address int
	// sends is the column of the release or payout that a transaction sends; 0 in other tables.
	sends int
	// event and endpoint are the columns of what a delivery delivers and where; 0 in other tables.
	event, endpoint int

	version func(*T) *int64 // nil: records of this kind have no version
	row     func(*T) R
	record  func(*R) T
	// also makes more statements for a new record, such as rows of a side table; may be nil.
	also func(*T) []insertion

	columns                       string // those that are read
	get, insert, update, deletion string
	getOfAccount                  string // get of a row whose account is known
	// exists counts the rows of an id that the library made up; "" for tables with other keys.
	exists string
	into   *into
}

func newTable[T, R any](
	name, object string,
	keys int,
	version func(*T) *int64,
	row func(*T) R,
	record func(*R) T,
) *table[T, R] {
	columns := columnsOf(reflect.TypeFor[R]())

	slots := keys
	if keys == 1 && columns[0].name == "id" && columns[1].name == "account_id" {
		keys = 2
	}

	t := &table[T, R]{
		name:    name,
		object:  object,
		keys:    keys,
		slots:   slots,
		cols:    columns,
		version: version,
		row:     row,
		record:  record,
	}

	t.setStatements()

	return t
}

// setStatements makes the statements of the columns, and finds those that rows are looked up by.
func (t *table[T, R]) setStatements() {
	var read, all, sets, where, marks []string

	for i, c := range t.cols {
		switch c.name {
		case "network":
			t.network = i
		case "address":
			t.address = i
		case "object_id":
			if t.name == "transactions" {
				t.sends = i
			}
		case "endpoint_id":
			t.endpoint = i
		case "event_id":
			t.event = i
		}

		all, marks = append(all, c.name), append(marks, "?")
		if !c.hidden {
			read = append(read, c.name)
		}

		if i < t.keys {
			where = append(where, c.name+" = ?")
		} else {
			sets = append(sets, c.name+" = ?")
		}
	}

	t.columns = strings.Join(read, ", ")
	condition, named := strings.Join(where, " AND "), strings.Join(where[:t.slots], " AND ")
	t.get = "SELECT " + t.columns + " FROM {" + t.name + "} WHERE " + named
	t.getOfAccount = t.get + " AND account_id = ?"
	t.into = &into{
		head:  "INSERT INTO {" + t.name + "} (" + strings.Join(all, ", ") + ") VALUES ",
		marks: "(" + strings.Join(marks, ", ") + ")",
	}
	t.insert = t.into.head + t.into.marks

	t.update = "UPDATE {" + t.name + "} SET " + strings.Join(
		sets, ", ",
	) + " WHERE " + condition + " AND version = ?"
	if t.cols[0].name == "id" {
		t.exists = "SELECT count(*) FROM {" + t.name + "} WHERE id = ?"
	}

	t.deletion = "DELETE FROM {" + t.name + "} WHERE " + named
}

// upsert returns the insert of a row that replaces the one of its key, if there is one.
func (t *table[T, R]) upsert(d *Dialect) string {
	names := make([]string, len(t.cols))
	for i, c := range t.cols {
		names[i] = c.name
	}

	return t.insert + d.Upsert(names[:t.keys], names[t.keys:])
}

// insertNew returns the insert of a row that leaves the one of its key, if there is one, as it is.
func (t *table[T, R]) insertNew(d *Dialect) string {
	names := make([]string, t.keys)
	for i := range names {
		names[i] = t.cols[i].name
	}

	return t.insert + d.Upsert(names, nil)
}

// values reads all columns of a record.
func (t *table[T, R]) values(record *T) ([]any, error) {
	row := t.row(record)
	fields := reflect.ValueOf(&row).Elem()

	out := make([]any, len(t.cols))
	for i, c := range t.cols {
		v, err := valueOf(fields.FieldByIndex(c.field))
		if err != nil {
			return nil, fmt.Errorf("write %s of a %s: %w", c.name, t.object, err)
		}

		out[i] = v
	}

	return out, nil
}

// replace puts some columns of a record into a buffered write of its row.
func (t *table[T, R]) replace(w *write, record *T, names ...string) error {
	row := t.row(record)
	fields := reflect.ValueOf(&row).Elem()
	values := slices.Clone(w.values)

	for i, c := range t.cols {
		if !slices.Contains(names, c.name) {
			continue
		}

		var err error
		if values[i], err = valueOf(fields.FieldByIndex(c.field)); err != nil {
			return fmt.Errorf("write %s of a %s: %w", c.name, t.object, err)
		}
	}

	w.values = values

	return nil
}

// fill makes a record of buffered values.
func (t *table[T, R]) fill(values []any) (record T, err error) {
	var row R

	fields := reflect.ValueOf(&row).Elem()

	for i, c := range t.cols {
		if !c.hidden {
			if err := setField(fields.FieldByIndex(c.field), values[i]); err != nil {
				return record, fmt.Errorf("read %s of a %s: %w", c.name, t.object, err)
			}
		}
	}

	return t.record(&row), nil
}

// targets are the fields of a row in the order of the table's columns, for a query of two tables at once.
func (t *table[T, R]) targets(row *R) []any {
	fields := reflect.ValueOf(row).Elem()
	out := make([]any, 0, len(t.cols))

	for _, c := range t.cols {
		if !c.hidden {
			out = append(out, fields.FieldByIndex(c.field).Addr().Interface())
		}
	}

	return out
}

// slot names a row in a transaction's buffer.
func (t *table[T, R]) slot(key []any) string {
	var b strings.Builder

	b.Grow(64)
	b.WriteString(t.name)

	for _, k := range key[:t.slots] {
		s, ok := k.(string)
		if !ok {
			s = fmt.Sprint(k)
		}

		b.WriteByte(0)
		b.WriteString(s)
	}

	return b.String()
}

// label names a row for people.
func label(key []any) string {
	parts := make([]string, 0, len(key))
	for _, k := range key {
		parts = append(parts, fmt.Sprint(k))
	}

	return strings.Join(parts, "/")
}
