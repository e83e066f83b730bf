package memory_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

func TestConformance(t *testing.T) {
	conformance.TestStore(t, func(*testing.T) store.Store { return memory.New() })
}
