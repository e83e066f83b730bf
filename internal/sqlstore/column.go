package sqlstore

// This file holds the columns of tables: a name and the codec of a record's field.

import (
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/deepcopy"
)

// col is one column of a table of T.
type col[T any] struct {
	name   string
	at     func(*T) codec
	hidden bool // written, never read
}

func str[T any, S ~string](name string, f func(*T) *S) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return text[S]{f(r)} }}
}

func note[T any](name string, f func(*T) *string) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return prose{f(r)} }}
}

func num[T any, N integer](name string, f func(*T) *N) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return number[N]{f(r)} }}
}

func yes[T any](name string, f func(*T) *bool) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return flag{f(r)} }}
}

func at[T any](name string, f func(*T) *time.Time) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return moment{f(r)} }}
}

func blob[T any](name string, f func(*T) *[]byte) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return bytes{f(r)} }}
}

func hash[T any](name string, f func(*T) *[32]byte) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return digest{f(r)} }}
}

func amt[T any](name string, f func(*T) *chain.Amount) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return amount{f(r)} }}
}

func amtOrNull[T any](name string, f func(*T) **chain.Amount) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return optionalAmount{f(r)} }}
}

func dec[T any](name string, f func(*T) *decimal.Decimal) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return fraction{f(r)} }}
}

func decOrNull[T any](name string, f func(*T) *decimal.NullDecimal) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return optionalFraction{f(r)} }}
}

func key[T any](name string, f func(*T) *chain.KeyRef) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return keyRef{f(r)} }}
}

func doc[T, V any](name string, f func(*T) *V) col[T] {
	clone := deepcopy.Of[V]()
	return col[T]{name: name, at: func(r *T) codec { return document[V]{f(r), clone} }}
}

func search[T any](name string, f func(*T) string) col[T] {
	return col[T]{name: name, at: func(r *T) codec { return searched(f(r)) }, hidden: true}
}

// block is the three columns of a reference to a block.
func block[T any](name string, f func(*T) *chain.Ref) []col[T] {
	return []col[T]{
		num(name+"_height", func(r *T) *uint64 { return &f(r).Height }),
		str(name+"_hash", func(r *T) *string { return &f(r).Hash }),
		at(name+"_time", func(r *T) *time.Time { return &f(r).Time }),
	}
}

// cols puts columns and groups of columns together.
func cols[T any](groups ...any) []col[T] {
	var out []col[T]

	for _, g := range groups {
		switch g := g.(type) {
		case col[T]:
			out = append(out, g)
		case []col[T]:
			out = append(out, g...)
		default:
			panic(fmt.Sprintf("sqlstore: %T is no column", g))
		}
	}

	return out
}
