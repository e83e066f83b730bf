package sqlstore

// This file holds tables: the statements made once from a row's columns.

import (
	"fmt"
	"reflect"
	"strings"
)

// table says how records T of one kind are stored as rows R. Its statements are templates; see Store.text.
type table[T, R any] struct {
	name    string // without prefix
	object  string // the word for it in errors
	keys    int    // so many columns, from the first, are the primary key
	cols    []column
	version func(*T) *int64 // nil: records of this kind have no version
	row     func(*T) R
	record  func(*R) T
	// also makes more statements for a new record, such as rows of a side table; may be nil.
	also func(*T) []insertion

	columns                               string // those that are read
	get, insert, update, upsert, deletion string
	into                                  *into
}

func newTable[T, R any](
	name, object string,
	keys int,
	version func(*T) *int64,
	row func(*T) R,
	record func(*R) T,
) *table[T, R] {
	columns := columnsOf(reflect.TypeFor[R]())
	t := &table[T, R]{
		name:    name,
		object:  object,
		keys:    keys,
		cols:    columns,
		version: version,
		row:     row,
		record:  record,
	}

	var read, all, sets, where, marks []string
	for i, c := range columns {
		all, marks = append(all, c.name), append(marks, "?")
		if !c.hidden {
			read = append(read, c.name)
		}

		if i < keys {
			where = append(where, c.name+" = ?")
		} else {
			sets = append(sets, c.name+" = ?")
		}
	}

	var excluded []string
	for _, c := range columns[keys:] {
		excluded = append(excluded, c.name+" = excluded."+c.name)
	}

	t.columns = strings.Join(read, ", ")
	condition := strings.Join(where, " AND ")
	t.get = "SELECT " + t.columns + " FROM {" + name + "} WHERE " + condition
	t.into = &into{
		head:  "INSERT INTO {" + name + "} (" + strings.Join(all, ", ") + ") VALUES ",
		marks: "(" + strings.Join(marks, ", ") + ")",
	}
	t.insert = t.into.head + t.into.marks
	t.upsert = t.insert + " ON CONFLICT (" + strings.Join(
		all[:keys], ", ",
	) + ") DO UPDATE SET " + strings.Join(
		excluded, ", ",
	)
	t.update = "UPDATE {" + name + "} SET " + strings.Join(
		sets, ", ",
	) + " WHERE " + condition + " AND version = ?"
	t.deletion = "DELETE FROM {" + name + "} WHERE " + condition

	return t
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
	b.WriteString(t.name)

	for _, k := range key {
		b.WriteByte(0)

		if s, ok := k.(string); ok {
			b.WriteString(s)
			continue
		}

		fmt.Fprint(&b, k)
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
