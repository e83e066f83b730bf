package memory

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/store/kv"
)

// encoded is the tree without records: kv encodes them, as over an engine with files.
type encoded struct{ *tree }

func (e encoded) View(ctx context.Context, f func(kv.Reader) error) error {
	return e.tree.View(ctx, func(r kv.Reader) error { return f(struct{ kv.Reader }{r}) })
}

func (e encoded) Update(ctx context.Context, f func(kv.Writer) error) error {
	return e.tree.Update(ctx, func(w kv.Writer) error { return f(struct{ kv.Writer }{w}) })
}

func TestBackend(t *testing.T) {
	conformance.TestBackend(t, conformance.Backends{
		Open:     func(string) (kv.Backend, error) { return newTree(), nil },
		Volatile: true,
	})
}

// TestEncodedRecords runs the suites where kv encodes the records.
func TestEncodedRecords(t *testing.T) {
	conformance.TestBackend(t, conformance.Backends{
		Open:     func(string) (kv.Backend, error) { return encoded{newTree()}, nil },
		Volatile: true,
	})
}
