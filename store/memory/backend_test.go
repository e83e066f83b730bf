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

// TestViewsShareTheCommittedTree: what a transaction wrote is undone once for all Views that begin amid it.
// Undone for each, 2,000 readers held up a block of 500 payments for minutes.
func TestViewsShareTheCommittedTree(t *testing.T) {
	tr := newTree()

	write := func(keys ...string) func(w kv.Writer) error {
		return func(w kv.Writer) error {
			for _, key := range keys {
				if err := w.Put([]byte(key), []byte(key)); err != nil {
					return err
				}
			}

			first, again := tr.hold(), tr.hold()
			if first != again {
				t.Error("two Views of one moment read two trees")
			}

			for _, key := range keys {
				if _, ok := first.items.Get(key); ok {
					t.Errorf("a View reads %q before it is committed", key)
				}
			}

			return nil
		}
	}

	for _, keys := range [][]string{{"a", "b"}, {"c"}} {
		if err := tr.Update(t.Context(), write(keys...)); err != nil {
			t.Fatal(err)
		}
	}

	after := tr.hold()
	for _, key := range []string{"a", "b", "c"} {
		if _, ok := after.items.Get(key); !ok {
			t.Errorf("%q is gone after its commit", key)
		}
	}
}
