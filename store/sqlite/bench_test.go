package sqlite_test

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/store"
)

func BenchmarkStore(b *testing.B) {
	conformance.BenchmarkStore(b, func(b *testing.B) store.Store { return open(b) })
}

// BenchmarkCreate compares creations with commits of one row on the same connection settings.
func BenchmarkCreate(b *testing.B) {
	db := raw(b)
	conformance.BenchmarkCreate(b, open(b), func(ctx context.Context, id, body string) error {
		_, err := db.ExecContext(ctx, "INSERT INTO raw (id, body) VALUES (?, ?)", id, body)
		return err
	})
}
