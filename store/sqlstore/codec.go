package sqlstore

// This file holds the types of columns: each writes itself as a driver's value and scans itself from one.
// Strings, integers up to 63 bits, booleans, bytes and decimals need no type of their own.

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/deepcopy"
)

// textOf returns the text of a column; NULL is "".
func textOf(src any) (string, error) {
	switch v := src.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	}

	return "", fmt.Errorf("a text column holds a %T", src)
}

// prose is foreign text, such as a node's error. Zero bytes and invalid UTF-8, which a database refuses,
// become U+FFFD.
type prose string

func (c prose) Value() (driver.Value, error) {
	return strings.ReplaceAll(strings.ToValidUTF8(string(c), "\uFFFD"), "\x00", "\uFFFD"), nil
}

// bits is an unsigned integer. Numbers above 2^63−1 are stored as the int64 of the same bits.
type bits uint64

func (c bits) Value() (driver.Value, error) { return int64(c), nil }

func (c *bits) Scan(src any) error {
	switch v := src.(type) {
	case int64:
		*c = bits(v)
		return nil
	case []byte:
		n, err := strconv.ParseInt(string(v), 10, 64)
		*c = bits(n)

		return err
	}

	return fmt.Errorf("a number column holds a %T", src)
}

// moment is a time in whole microseconds, in SQLite as their number since 1970; the zero time is NULL.
type moment time.Time

func (c moment) Value() (driver.Value, error) {
	if time.Time(c).IsZero() {
		return nil, nil
	}

	return time.Time(c).UTC().Truncate(time.Microsecond), nil
}

func (c *moment) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*c = moment{}
	case int64:
		*c = moment(time.UnixMicro(v).UTC())
	case time.Time:
		*c = moment(v.UTC())
	default:
		return fmt.Errorf("a time column holds a %T", src)
	}

	return nil
}

// digest is 32 bytes.
type digest [32]byte

func (c digest) Value() (driver.Value, error) { return append([]byte(nil), c[:]...), nil }

func (c *digest) Scan(src any) error {
	v, ok := src.([]byte)
	if !ok || len(v) != len(c) {
		return fmt.Errorf("a digest column holds %d bytes of %T", len(v), src)
	}

	copy(c[:], v)

	return nil
}

// amount is in base units, stored as decimal digits: no column type of all databases holds 256 bits.
type amount chain.Amount

func (c amount) Value() (driver.Value, error) { return chain.Amount(c).String(), nil }

func (c *amount) Scan(src any) error {
	s, err := textOf(src)
	if err != nil {
		return err
	}

	parsed, err := chain.ParseAmount(s)
	*c = amount(parsed)

	return err
}

// optionalAmount points to an amount or NULL.
type optionalAmount struct{ amount **chain.Amount }

func (c optionalAmount) Value() (driver.Value, error) {
	if *c.amount == nil {
		return nil, nil
	}

	return (*c.amount).String(), nil
}

func (c optionalAmount) Scan(src any) error {
	if *c.amount = nil; src == nil {
		return nil
	}

	*c.amount = new(chain.Amount)

	return (*amount)(*c.amount).Scan(src)
}

// keyRef is a key reference, written as chain.KeyRef.String does; the zero reference is "".
type keyRef chain.KeyRef

func (c keyRef) Value() (driver.Value, error) {
	if c == (keyRef{}) {
		return "", nil
	}

	return chain.KeyRef(c).String(), nil
}

func (c *keyRef) Scan(src any) error {
	s, err := textOf(src)
	if err != nil {
		return err
	}

	if *c = (keyRef{}); s == "" {
		return nil
	}

	parts := strings.Split(s, "/")
	if len(parts) != 4 || parts[1] != "live" && parts[1] != "test" {
		return fmt.Errorf("%q is not a key reference", s)
	}

	index, err := strconv.ParseUint(parts[3], 10, 32)
	if err != nil {
		return fmt.Errorf("%q is not a key reference: %w", s, err)
	}

	*c = keyRef{
		Family:   chain.Family(parts[0]),
		Livemode: parts[1] == "live",
		Role:     chain.Role(parts[2]),
		Index:    uint32(index),
	}

	return nil
}

// documentCodec returns the codec of a nested value. The value is written as JSON, with times as stores keep
// them. The zero value is NULL.
func documentCodec(t reflect.Type) codec {
	clone := deepcopy.OfType(t)

	return codec{
		value: func(field reflect.Value) (driver.Value, error) {
			if field.IsZero() {
				return nil, nil
			}

			var b strings.Builder
			if err := json.NewEncoder(&b).Encode(clone(field).Interface()); err != nil {
				return nil, err
			}

			return strings.TrimSuffix(b.String(), "\n"), nil
		},
		target: func(field reflect.Value) any { return document{field} },
	}
}

// document scans JSON into a field.
type document struct{ field reflect.Value }

func (c document) Scan(src any) error {
	c.field.SetZero()

	switch v := src.(type) {
	case nil:
		return nil
	case []byte:
		return json.Unmarshal(v, c.field.Addr().Interface())
	case string:
		return json.Unmarshal([]byte(v), c.field.Addr().Interface())
	}

	return fmt.Errorf("a column of JSON holds a %T", src)
}

// searched is the lower-case form of a text, for queries only. It is never read back.
type searched string

func (c searched) Value() (driver.Value, error) { return c.lower(), nil }
func (c searched) lower() string                { return strings.ToLower(string(c)) }
