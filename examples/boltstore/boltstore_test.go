package boltstore_test

import (
	"path/filepath"
	"testing"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/examples/boltstore"
	"github.com/seed-8ee7f392/payments/store/kv"
)

func TestBackend(t *testing.T) {
	conformance.TestBackend(t, conformance.Backends{
		Open: func(dir string) (kv.Backend, error) {
			return boltstore.OpenBackend(filepath.Join(dir, "payments.db"))
		},
	})
}
