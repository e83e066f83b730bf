package boltstore_test

import (
	"os"
	"path/filepath"
	"strings"
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

// TestEveryLineIsExplained holds docs/write-a-store.md to the source: together its blocks are the file.
func TestEveryLineIsExplained(t *testing.T) {
	source, err := os.ReadFile("boltstore.go")
	if err != nil {
		t.Fatal(err)
	}

	page, err := os.ReadFile("../../docs/write-a-store.md")
	if err != nil {
		t.Fatal(err)
	}

	var blocks []string

	for _, after := range strings.Split(string(page), "```go\n")[1:] {
		block, _, _ := strings.Cut(after, "```")
		blocks = append(blocks, block)
	}

	if got := strings.Join(blocks, "\n"); got != string(source) {
		t.Errorf("the page explains another file:\n%s", got)
	}

	if lines := strings.Count(string(source), "\n"); lines > 200 {
		t.Errorf("the example has %d lines, at most 200", lines)
	}
}
