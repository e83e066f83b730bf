package tree_test

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/proof/pitfalls.md and docs/proof/testing.md name is there.
func TestPitfallsNameTheirTests(t *testing.T) {
	for page, least := range map[string]int{"docs/proof/pitfalls.md": 30, "docs/proof/testing.md": 15} {
		t.Run(page, func(t *testing.T) { namesItsTests(t, page, least) })
	}
}

// Every test that the page of a network names is there. A name without a package is one of the driver's.
func TestNetworkPagesNameTheirTests(t *testing.T) {
	name := regexp.MustCompile("(?:`([a-z0-9/]+)` )?`?\\b(Test[A-Z][A-Za-z0-9]+)")

	for page, driver := range map[string]string{
		"docs/solana.md": "chain/solana",
		"docs/tron.md":   "chain/tron",
	} {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}

			named := name.FindAllStringSubmatch(string(text), -1)
			if len(named) < 20 {
				t.Fatalf("%s names %d tests", page, len(named))
			}

			for _, n := range named {
				if dir := cmp.Or(n[1], driver); !hasTest(t, dir, n[2]) {
					t.Errorf("%s names %s of %s, which is not there", page, n[2], dir)
				}
			}
		})
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
		if !hasTest(t, n[1], n[2]) {
			t.Errorf("%s names %s of %s, which is not there", path, n[2], n[1])
		}
	}
}

// hasTest reports whether a package's tests declare a function of this name.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()

	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}

		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}

	return false
}
