package sqlstore

// This file holds tables: the statements that are made once from a row's columns.

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// table defines how records T of one kind are stored. Its statements are templates; see Store.text.
type table[T any] struct {
	name   string // without prefix
	object string // the name of a record in errors
	keys   int    // how many columns, from the first, are the primary key
	slots  int    // how many of these identify a row: the id alone, if the account follows it
	cols   []column
	// network and address are the columns of a row's deposit address; 0 if it has none.
	network, address int
	// sends is the column of the release or payout that a transaction sends; 0 in other tables.
	sends int
	// event and endpoint are the columns of a delivery's event and endpoint; 0 in other tables.
	event, endpoint int

	version func(*T) *int64 // nil: records of this kind have no version
	// also makes more statements for a new record, such as rows of a side table; may be nil.
	also func(*T) []insertion

	columns                       string // the columns that are read
	get, insert, update, deletion string
	getOfAccount                  string // get for a row whose account is known
	// exists counts the rows of an id that the library generated; "" for tables with other keys.
	exists string
	into   *into
}

// newTable makes the table of a record. keys names the columns of the primary key in their order, with commas.
func newTable[T any](name, object, keys string, options ...option) *table[T] {
	record := reflect.TypeFor[T]()

	columns := columnsOf(record, "", "")
	for _, change := range options {
		columns = change(columns)
	}

	key := strings.Split(keys, ", ")
	slots := len(key)

	// Rows with an id are spread by account, which then is part of the key.
	if owned := slices.ContainsFunc(columns, isNamed("account_id")); keys == "id" && owned {
		key = append(key, "account_id")
	}

	t := &table[T]{
		name:   name,
		object: object,
		keys:   len(key),
		slots:  slots,
		cols:   keysFirst(columns, key),
	}

	if field, ok := record.FieldByName("Version"); ok {
		t.version = func(record *T) *int64 {
			return reflect.ValueOf(record).Elem().FieldByIndex(field.Index).Addr().Interface().(*int64)
		}
	}

	t.setStatements()

	return t
}

func isNamed(name string) func(column) bool {
	return func(c column) bool { return c.name == name }
}

// keysFirst returns the columns with the key's columns first.
func keysFirst(columns []column, key []string) []column {
	var first []column

	for _, name := range key {
		i := slices.IndexFunc(columns, isNamed(name))
		first = append(first, columns[i])
	}

	return append(first, slices.DeleteFunc(columns, func(c column) bool {
		return slices.Contains(key, c.name)
	})...)
}

// setStatements makes the statements of the table, and finds the columns that other code looks up.
func (t *table[T]) setStatements() {
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

// upsert returns the insert of a row that replaces the row with its key, if there is one.
func (t *table[T]) upsert(d *Dialect) string {
	names := make([]string, len(t.cols))
	for i, c := range t.cols {
		names[i] = c.name
	}

	return t.insert + d.Upsert(names[:t.keys], names[t.keys:])
}

// insertNew returns the insert of a row that leaves an existing row with its key as it is.
func (t *table[T]) insertNew(d *Dialect) string {
	names := make([]string, t.keys)
	for i := range names {
		names[i] = t.cols[i].name
	}

	return t.insert + d.Upsert(names, nil)
}

// values reads all columns of a record.
func (t *table[T]) values(record *T) ([]any, error) {
	fields := reflect.ValueOf(record).Elem()

	out := make([]any, len(t.cols))
	for i := range t.cols {
		v, err := t.value(&t.cols[i], fields)
		if err != nil {
			return nil, err
		}

		out[i] = v
	}

	return out, nil
}

// value reads a column of a record's fields.
func (t *table[T]) value(c *column, fields reflect.Value) (any, error) {
	v, err := c.codec.value(fields.FieldByIndex(c.field))
	if err != nil {
		return nil, fmt.Errorf("write %s of a %s: %w", c.name, t.object, err)
	}

	return v, nil
}

// replace sets some columns of a buffered write to the values of a record.
func (t *table[T]) replace(w *write, record *T, names ...string) error {
	fields := reflect.ValueOf(record).Elem()
	values := slices.Clone(w.values)

	for i := range t.cols {
		if !slices.Contains(names, t.cols[i].name) {
			continue
		}

		var err error
		if values[i], err = t.value(&t.cols[i], fields); err != nil {
			return err
		}
	}

	w.values = values

	return nil
}

// fill makes a record from buffered values.
func (t *table[T]) fill(values []any) (record T, err error) {
	fields := reflect.ValueOf(&record).Elem()

	for i := range t.cols {
		if c := &t.cols[i]; !c.hidden {
			if err := c.set(fields.FieldByIndex(c.field), values[i]); err != nil {
				return record, fmt.Errorf("read %s of a %s: %w", c.name, t.object, err)
			}
		}
	}

	return record, nil
}

// targets returns the fields of a record that a query of the table's columns is scanned into. Scanning again
// does not change copies that were made of the record before.
func (t *table[T]) targets(record *T) []any {
	fields := reflect.ValueOf(record).Elem()
	out := make([]any, 0, len(t.cols))

	for i := range t.cols {
		if c := &t.cols[i]; !c.hidden {
			out = append(out, c.codec.target(fields.FieldByIndex(c.field)))
		}
	}

	return out
}

// slot identifies a row in a transaction's buffer.
func (t *table[T]) slot(key []any) string {
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

// label returns a row's key in readable form.
func label(key []any) string {
	parts := make([]string, 0, len(key))
	for _, k := range key {
		parts = append(parts, fmt.Sprint(k))
	}

	return strings.Join(parts, "/")
}
