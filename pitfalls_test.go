package payments_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/pitfalls.md and docs/testing.md name is there.
func TestPitfallsNameTheirTests(t *testing.T) {
	for page, least := range map[string]int{"docs/pitfalls.md": 30, "docs/testing.md": 15} {
		t.Run(page, func(t *testing.T) { namesItsTests(t, page, least) })
	}
}

// namesItsTests checks that a page names at least so many tests, all of which are there.
func namesItsTests(t *testing.T, path string, least int) {
	t.Helper()

	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	named := regexp.MustCompile("`([a-z0-9/.]+)` (Test[A-Za-z0-9]+)").FindAllStringSubmatch(string(page), -1)
	if len(named) < least {
		t.Fatalf("%s names %d tests", path, len(named))
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
			t.Errorf("%s names %s of %s, which is not there", path, n[2], n[1])
		}
	}
}
