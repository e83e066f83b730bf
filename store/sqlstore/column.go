package sqlstore

// This file maps records to columns. Each field of a record is a column of its name in snake case, and its Go
// type decides how it is written and read. Exceptions are options of the table; see option.

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/jmoiron/sqlx/reflectx"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

// mapper finds the field of a column for sqlx, for queries whose rows are not records.
var mapper = reflectx.NewMapper("db")

// column is one column of a table.
type column struct {
	name  string
	path  string // the names of the fields that lead to it, such as Deposit.Key
	field []int  // the index for reflect.Value.FieldByIndex
	codec codec
	// hidden columns are written and never read: they serve queries.
	hidden bool
}

// codec writes a field as a driver's value, and returns the target that a driver's value is scanned into.
type codec struct {
	value  func(field reflect.Value) (driver.Value, error)
	target func(field reflect.Value) any
}

// parts are the structs whose fields are separate columns, prefixed with the name of the field that holds
// them. All other structs are documents.
var parts = map[reflect.Type]bool{
	reflect.TypeFor[event.Owner]():     true,
	reflect.TypeFor[event.Request]():   true,
	reflect.TypeFor[chain.Ref]():       true,
	reflect.TypeFor[chain.Party]():     true,
	reflect.TypeFor[chain.Outpoint]():  true,
	reflect.TypeFor[chain.Space]():     true,
	reflect.TypeFor[wallet.Conflict](): true,
}

// columnsOf returns the columns of a record in the order of its fields. Fields that JSON omits are not
// columns.
func columnsOf(record reflect.Type, prefix, path string) []column {
	var out []column

	for i := range record.NumField() {
		field := record.Field(i)
		if field.Tag.Get("json") == "-" {
			continue
		}

		c := column{name: prefix + snake(field.Name), path: path + field.Name, field: []int{i}}

		if !field.Anonymous && !parts[field.Type] {
			c.codec = codecOf(field.Type)
			out = append(out, c)

			continue
		}

		within := c.name + "_"
		if field.Anonymous || field.Type == reflect.TypeFor[event.Owner]() {
			within = prefix // an owner's columns are the same in every table
		}

		for _, part := range columnsOf(field.Type, within, c.path+".") {
			part.field = append([]int{i}, part.field...)
			out = append(out, part)
		}
	}

	return out
}

// snake returns the name of a column for a field: InvoiceID is invoice_id.
func snake(name string) string {
	var b strings.Builder

	letters := []rune(name)
	for i, r := range letters {
		begins := i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins {
			b.WriteByte('_')
		}

		b.WriteRune(unicode.ToLower(r))
	}

	return b.String()
}

// option changes a table's columns, beyond the names and types of its record's fields.
type option func(columns []column) []column

// named gives the column of a field another name.
func named(path, name string) option {
	return func(columns []column) []column {
		at(columns, path).name = name
		return columns
	}
}

// foreign marks a field that holds foreign text; see prose.
func foreign(path string) option {
	return func(columns []column) []column {
		at(columns, path).codec.value = func(field reflect.Value) (driver.Value, error) {
			return prose(field.String()).Value()
		}

		return columns
	}
}

// searchedBy adds a hidden column that holds a field's text in lower case.
func searchedBy(name, path string) option {
	return func(columns []column) []column {
		c := *at(columns, path)
		c.name, c.hidden = name, true
		c.codec.value = func(field reflect.Value) (driver.Value, error) {
			return searched(field.String()).Value()
		}

		return append(columns, c)
	}
}

// derived adds a hidden column for a field inside a document.
func derived(name string, record reflect.Type, path ...string) option {
	c := column{name: name, hidden: true}

	for _, step := range path {
		field, ok := record.FieldByName(step)
		if !ok {
			panic("sqlstore: " + record.String() + " has no field " + step)
		}

		c.field, record = append(c.field, field.Index...), field.Type
	}

	c.codec = codecOf(record)

	return func(columns []column) []column { return append(columns, c) }
}

// at finds the column of a field.
func at(columns []column, path string) *column {
	for i := range columns {
		if columns[i].path == path && !columns[i].hidden {
			return &columns[i]
		}
	}

	panic("sqlstore: no column holds the field " + path)
}

// codecOf returns the codec of a type. Strings, integers up to 63 bits, booleans, bytes and types that
// implement driver.Valuer are plain columns; everything else is a document.
func codecOf(t reflect.Type) codec {
	if c, ok := codecs[t]; ok {
		return c
	}

	if t.Implements(reflect.TypeFor[driver.Valuer]()) {
		return codec{value: valuerValue, target: pointer}
	}

	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint8, reflect.Uint32:
		return codec{value: plainValue, target: pointer}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return codec{value: plainValue, target: bytesPointer}
		}
	}

	return documentCodec(t)
}

// codecs are the codecs of types with a column type of their own; see codec.go.
var codecs = map[reflect.Type]codec{
	reflect.TypeFor[time.Time](): codecFor(func(v *time.Time) *moment { return (*moment)(v) }),
	reflect.TypeFor[uint64]():    codecFor(func(v *uint64) *bits { return (*bits)(v) }),
	reflect.TypeFor[[32]byte]():  codecFor(func(v *[32]byte) *digest { return (*digest)(v) }),
	reflect.TypeFor[chain.Amount](): codecFor(func(v *chain.Amount) *amount {
		return (*amount)(v)
	}),
	reflect.TypeFor[*chain.Amount](): codecFor(func(v **chain.Amount) optionalAmount {
		return optionalAmount{v}
	}),
	reflect.TypeFor[chain.KeyRef](): codecFor(func(v *chain.KeyRef) *keyRef { return (*keyRef)(v) }),
}

// codecFor returns the codec of a type V whose values convert to the column type C.
func codecFor[V any, C driver.Valuer](as func(*V) C) codec {
	see := func(field reflect.Value) C { return as(field.Addr().Interface().(*V)) }

	return codec{
		value:  func(field reflect.Value) (driver.Value, error) { return see(field).Value() },
		target: func(field reflect.Value) any { return see(field) },
	}
}

func pointer(field reflect.Value) any { return field.Addr().Interface() }

func bytesPointer(field reflect.Value) any {
	return field.Addr().Convert(reflect.TypeFor[*[]byte]()).Interface()
}

func valuerValue(field reflect.Value) (driver.Value, error) {
	return field.Addr().Interface().(driver.Valuer).Value() // by its address, which avoids a copy
}

// plainValue returns the value of a field without a codec type of its own. Empty bytes are NULL.
func plainValue(field reflect.Value) (driver.Value, error) {
	switch field.Kind() {
	case reflect.String:
		return field.String(), nil
	case reflect.Bool:
		return field.Bool(), nil
	case reflect.Int, reflect.Int64:
		return field.Int(), nil
	case reflect.Uint8, reflect.Uint32:
		return int64(field.Uint()), nil
	}

	if field.Len() == 0 {
		return nil, nil
	}

	return append([]byte(nil), field.Bytes()...), nil
}

// set sets a column's field to its codec's value.
func (c *column) set(field reflect.Value, value driver.Value) error {
	if scanner, ok := c.codec.target(field).(sql.Scanner); ok {
		return scanner.Scan(value)
	}

	switch v := value.(type) {
	case nil:
		field.SetZero()
	case string:
		field.SetString(v)
	case bool:
		field.SetBool(v)
	case []byte:
		field.SetBytes(append([]byte(nil), v...))
	case json.RawMessage:
		field.SetBytes(append([]byte(nil), v...))
	case int64:
		if field.CanUint() {
			field.SetUint(uint64(v))
		} else {
			field.SetInt(v)
		}
	default:
		return fmt.Errorf("a field of type %s cannot hold a %T", field.Type(), value)
	}

	return nil
}
