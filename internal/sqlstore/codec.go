package sqlstore

// This file turns fields of records into column values and back. A codec points at one field: Value reads
// it for a statement, Scan fills it from a row, or from what Value gave when the row is still buffered.

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
)

type codec interface {
	driver.Valuer
	sql.Scanner
}

// text is any kind of string.
type text[S ~string] struct{ p *S }

func (c text[S]) Value() (driver.Value, error) { return string(*c.p), nil }
func (c text[S]) Scan(src any) error {
	s, err := textOf(src)
	*c.p = S(s)

	return err
}

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
type prose struct{ p *string }

func (c prose) Value() (driver.Value, error) {
	return strings.ReplaceAll(strings.ToValidUTF8(*c.p, "\uFFFD"), "\x00", "\uFFFD"), nil
}
func (c prose) Scan(src any) error { return text[string](c).Scan(src) }

type integer interface {
	~int | ~int64 | ~uint8 | ~uint32 | ~uint64
}

// number is an integer. Numbers above 2^63−1 are stored as the int64 of the same bits.
type number[N integer] struct{ p *N }

func (c number[N]) Value() (driver.Value, error) { return int64(*c.p), nil }
func (c number[N]) Scan(src any) error {
	switch v := src.(type) {
	case int64:
		*c.p = N(v)
	case int32:
		*c.p = N(v)
	default:
		return fmt.Errorf("a number column holds a %T", src)
	}

	return nil
}

// flag is a boolean, in SQLite 1 or 0.
type flag struct{ p *bool }

func (c flag) Value() (driver.Value, error) { return *c.p, nil }
func (c flag) Scan(src any) error {
	switch v := src.(type) {
	case bool:
		*c.p = v
	case int64:
		*c.p = v != 0
	default:
		return fmt.Errorf("a yes-or-no column holds a %T", src)
	}

	return nil
}

// moment is a time in whole microseconds, in SQLite as their number since 1970; the zero time is NULL.
type moment struct{ p *time.Time }

func (c moment) Value() (driver.Value, error) {
	if c.p.IsZero() {
		return nil, nil
	}

	return c.p.UTC().Truncate(time.Microsecond), nil
}

func (c moment) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*c.p = time.Time{}
	case int64:
		*c.p = time.UnixMicro(v).UTC()
	case time.Time:
		*c.p = v.UTC()
	default:
		return fmt.Errorf("a time column holds a %T", src)
	}

	return nil
}

// bytes are bytes; empty ones are NULL.
type bytes struct{ p *[]byte }

func (c bytes) Value() (driver.Value, error) {
	if len(*c.p) == 0 {
		return nil, nil
	}

	return append([]byte(nil), *c.p...), nil
}

func (c bytes) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*c.p = nil
	case []byte:
		*c.p = append([]byte(nil), v...)
	default:
		return fmt.Errorf("a column of bytes holds a %T", src)
	}

	return nil
}

// digest is 32 bytes.
type digest struct{ p *[32]byte }

func (c digest) Value() (driver.Value, error) { return append([]byte(nil), c.p[:]...), nil }
func (c digest) Scan(src any) error {
	v, ok := src.([]byte)
	if !ok || len(v) != len(c.p) {
		return fmt.Errorf("a digest column holds %d bytes of %T", len(v), src)
	}

	copy(c.p[:], v)

	return nil
}

// amount is in base units, stored as decimal digits: no column type of all databases holds 256 bits.
type amount struct{ p *chain.Amount }

func (c amount) Value() (driver.Value, error) { return c.p.String(), nil }
func (c amount) Scan(src any) error {
	s, err := textOf(src)
	if err != nil {
		return err
	}

	*c.p, err = chain.ParseAmount(s)

	return err
}

// optionalAmount is an amount or NULL.
type optionalAmount struct{ p **chain.Amount }

func (c optionalAmount) Value() (driver.Value, error) {
	if *c.p == nil {
		return nil, nil
	}

	return (*c.p).String(), nil
}

func (c optionalAmount) Scan(src any) error {
	if *c.p = nil; src == nil {
		return nil
	}

	*c.p = new(chain.Amount)

	return amount{*c.p}.Scan(src)
}

// fraction is a decimal, stored as digits.
type fraction struct{ p *decimal.Decimal }

func (c fraction) Value() (driver.Value, error) { return c.p.String(), nil }
func (c fraction) Scan(src any) error {
	s, err := textOf(src)
	if err != nil {
		return err
	}

	*c.p, err = decimal.NewFromString(s)

	return err
}

// optionalFraction is a decimal or NULL.
type optionalFraction struct{ p *decimal.NullDecimal }

func (c optionalFraction) Value() (driver.Value, error) {
	if !c.p.Valid {
		return nil, nil
	}

	return c.p.Decimal.String(), nil
}

func (c optionalFraction) Scan(src any) error {
	if *c.p = (decimal.NullDecimal{}); src == nil {
		return nil
	}

	c.p.Valid = true

	return fraction{&c.p.Decimal}.Scan(src)
}

// keyRef is a key reference, written as chain.KeyRef.String does.
type keyRef struct{ p *chain.KeyRef }

func (c keyRef) Value() (driver.Value, error) {
	if *c.p == (chain.KeyRef{}) {
		return "", nil
	}

	return c.p.String(), nil
}

func (c keyRef) Scan(src any) error {
	s, err := textOf(src)
	if err != nil {
		return err
	}

	if *c.p = (chain.KeyRef{}); s == "" {
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

	*c.p = chain.KeyRef{
		Family:   chain.Family(parts[0]),
		Livemode: parts[1] == "live",
		Role:     chain.Role(parts[2]),
		Index:    uint32(index),
	}

	return nil
}

// document is a nested value as JSON; the zero value is NULL.
type document[V any] struct {
	p     *V
	clone func(*V) *V // brings nested times into the form of stores
}

func (c document[V]) Value() (driver.Value, error) {
	if reflect.ValueOf(c.p).Elem().IsZero() {
		return nil, nil
	}

	var b strings.Builder
	if err := json.NewEncoder(&b).Encode(c.clone(c.p)); err != nil {
		return nil, err
	}

	return strings.TrimSuffix(b.String(), "\n"), nil
}

func (c document[V]) Scan(src any) error {
	var zero V

	*c.p = zero

	s, err := textOf(src)
	if err != nil || s == "" {
		return err
	}

	return json.Unmarshal([]byte(s), c.p)
}

// searched is the lower-case form of a text, for queries only. It is never read back.
type searched string

func (c searched) Value() (driver.Value, error) { return c.lower(), nil }
func (c searched) lower() string                { return strings.ToLower(string(c)) }
func (searched) Scan(any) error                 { return nil }
