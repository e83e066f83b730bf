package payments_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/pitfalls.md names is there.
func TestPitfallsNameTheirTests(t *testing.T) {
	page, err := os.ReadFile("docs/pitfalls.md")
	if err != nil {
		t.Fatal(err)
	}

	named := regexp.MustCompile("`([a-z0-9/.]+)` (Test[A-Za-z0-9]+)").FindAllStringSubmatch(string(page), -1)
	if len(named) < 30 {
		t.Fatalf("docs/pitfalls.md names %d tests", len(named))
	}

	for _, n := range named {
		files, err := filepath.Glob(filepath.Join(n[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}

		found := false

		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}

			found = found || strings.Contains(string(text), "\nfunc "+n[2]+"(")
		}

		if !found {
			t.Errorf("docs/pitfalls.md names %s of %s, which is not there", n[2], n[1])
		}
	}
}
