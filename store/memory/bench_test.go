package memory_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// BenchmarkStore measures the store that tests run on.
func BenchmarkStore(b *testing.B) {
	conformance.BenchmarkStore(b, func(*testing.B) store.Store { return memory.New() })
}
