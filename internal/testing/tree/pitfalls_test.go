package tree_test

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that a page of proof names is there. A name without a package is one of the package before it in its line.
func TestPagesOfProofNameTheirTests(t *testing.T) {
	pages, err := filepath.Glob("docs/proof/*.md")
	if err != nil {
		t.Fatal(err)
	}

	named := 0

	for _, page := range pages {
		if networkPages[page] != "" {
			continue
		}

		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		for line := range strings.Lines(string(text)) {
			named += namesItsTests(t, page, line)
		}
	}

	if named < 300 {
		t.Errorf("the pages of proof name %d tests", named)
	}
}

var testOfPackage = regexp.MustCompile("(?:`([a-z0-9/.]+)` )?`?\\b(Test[A-Z][A-Za-z0-9]*)")

// namesItsTests checks that the tests that a line of a page names are there, and returns how many they are. Names
// before the first package are none.
func namesItsTests(t *testing.T, page, line string) (named int) {
	t.Helper()

	dir := ""

	for _, n := range testOfPackage.FindAllStringSubmatch(line, -1) {
		if dir = cmp.Or(n[1], dir); dir == "" {
			continue
		}

		named++

		if !hasTest(t, dir, n[2]) {
			t.Errorf("%s names %s of %s, which is not there", page, n[2], dir)
		}
	}

	return named
}

// networkPages are the pages on which a test without a package is one of the driver's.
var networkPages = map[string]string{
	"docs/proof/solana.md": "chain/solana",
	"docs/proof/tron.md":   "chain/tron",
}

// Every test that the page of proof of a network names is there. A name without a package is one of the driver's.
func TestNetworkPagesNameTheirTests(t *testing.T) {
	name := regexp.MustCompile("(?:`([a-z0-9/]+)` )?`?\\b(Test[A-Z][A-Za-z0-9]+)")

	for page, driver := range networkPages {
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
