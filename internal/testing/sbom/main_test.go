package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

const root = "github.com/seed-8ee7f392/payments"

// TestBillOfMaterials names what a release links with version and hash, and nothing that only tests need.
func TestBillOfMaterials(t *testing.T) {
	var out bytes.Buffer
	if err := write(&out, []string{root + "/..."}); err != nil {
		t.Fatal(err)
	}

	var document bom
	if err := json.Unmarshal(out.Bytes(), &document); err != nil {
		t.Fatal(err)
	}

	if document.Metadata.Component.Name != root {
		t.Errorf("it is the bill of %q, want %q", document.Metadata.Component.Name, root)
	}

	listed := map[string]component{}
	for _, c := range document.Components {
		listed[c.Name] = c

		if c.Version == "" || len(c.Properties) != 1 || !strings.HasPrefix(c.Properties[0].Value, "h1:") {
			t.Errorf("%s has version %q and %v", c.Name, c.Version, c.Properties)
		}
	}

	for _, name := range []string{"github.com/ethereum/go-ethereum", "github.com/jackc/pgx/v5", "modernc.org/sqlite"} {
		if c := listed[name]; c.PURL != "pkg:golang/"+name+"@"+c.Version {
			t.Errorf("%s is listed as %+v", name, c)
		}
	}

	for _, name := range []string{"go.uber.org/goleak", "pgregory.net/rapid", root} {
		if _, ok := listed[name]; ok {
			t.Errorf("%s is listed, and no release links it", name)
		}
	}
}

// TestOnePackageLinksLess lists what an application with one store links.
func TestOnePackageLinksLess(t *testing.T) {
	linked, err := linkedModules([]string{root + "/store/sqlite"})
	if err != nil {
		t.Fatal(err)
	}

	for _, m := range linked {
		if m.Path == "github.com/ethereum/go-ethereum" || m.Path == "github.com/jackc/pgx/v5" {
			t.Errorf("the store for SQLite links %s", m.Path)
		}
	}

	if len(linked) < 3 {
		t.Errorf("it links %d modules", len(linked))
	}
}
