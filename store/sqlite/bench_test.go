package sqlite_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/sqlstore/sqltest"
	"github.com/seed-8ee7f392/payments/store"
)

func BenchmarkStore(b *testing.B) {
	conformance.BenchmarkStore(b, func(b *testing.B) store.Store { return open(b) })
}

// BenchmarkRawInsert is what a commit of one row costs on the same connection settings, in as many goroutines.
func BenchmarkRawInsert(b *testing.B) {
	sqltest.RawInsert(b, raw(b), "INSERT INTO raw (id, body) VALUES (?, ?)")
}
