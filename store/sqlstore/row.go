package sqlstore

// This file maps rows to columns: a row is a struct whose fields name their columns in tags `db`, which
// sqlx reads too. The option "hidden" marks a column that is written and never read.

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/jmoiron/sqlx/reflectx"

	"github.com/seed-8ee7f392/payments/chain"
)

// mapper finds the field of a column for sqlx.
var mapper = reflectx.NewMapper("db")

// column is one column of a table.
type column struct {
	name   string
	field  []int // the index of the row's field, for reflect.Value.FieldByIndex
	hidden bool
}

// columnsOf returns the columns of a row type in the order of its fields, those of embedded rows included.
func columnsOf(row reflect.Type) []column {
	var out []column

	for i := range row.NumField() {
		field := row.Field(i)
		if field.Anonymous {
			for _, c := range columnsOf(field.Type) {
				c.field = append([]int{i}, c.field...)
				out = append(out, c)
			}

			continue
		}

		name, option, _ := strings.Cut(field.Tag.Get("db"), ",")
		out = append(out, column{name: name, field: []int{i}, hidden: option == "hidden"})
	}

	return out
}

// valueOf returns the value of an addressable field as drivers take it. Empty bytes are NULL.
func valueOf(field reflect.Value) (driver.Value, error) {
	if valuer, ok := field.Addr().Interface().(driver.Valuer); ok { // by its address, which needs no copy
		return valuer.Value()
	}

	switch field.Kind() {
	case reflect.String:
		return field.String(), nil
	case reflect.Bool:
		return field.Bool(), nil
	case reflect.Int, reflect.Int64:
		return field.Int(), nil
	case reflect.Uint8, reflect.Uint32:
		return int64(field.Uint()), nil
	case reflect.Slice:
		if field.Len() == 0 {
			return nil, nil
		}

		return append([]byte(nil), field.Bytes()...), nil
	}

	return nil, fmt.Errorf("a field of type %s has no column type", field.Type())
}

// setField sets a field to what valueOf returned for it.
func setField(field reflect.Value, value driver.Value) error {
	if scanner, ok := field.Addr().Interface().(sql.Scanner); ok {
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

// ownerRow is the two columns of an event.Owner.
type ownerRow struct {
	AccountID string `db:"account_id"`
	Livemode  bool   `db:"livemode"`
}

// blockRef puts the three columns of a reference to a block together.
func blockRef(height bits, hash string, at moment) chain.Ref {
	return chain.Ref{Height: uint64(height), Hash: hash, Time: time.Time(at)}
}
