package tree_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestModulesThatOnlyTestsNeed lists the modules that neither a public package, conformance included, nor an example
// needs: they would be in the go.sum of every application for our tests alone.
func TestModulesThatOnlyTestsNeed(t *testing.T) {
	var programs []string // and packages, but those that only tests import

	for _, pkg := range goList(t, "{{.ImportPath}}", "./...") {
		if !strings.Contains(pkg, "/internal/") {
			programs = append(programs, pkg)
		}
	}

	const module = "{{with .Module}}{{.Path}}{{end}}"

	needed := goList(t, module, append([]string{"-deps"}, programs...)...)

	var onlyTests []string

	for _, path := range goList(t, module, "-deps", "-test", "./...") {
		if !slices.Contains(needed, path) {
			onlyTests = append(onlyTests, path)
		}
	}

	slices.Sort(onlyTests)

	if want := []string{"go.uber.org/goleak", "pgregory.net/rapid"}; !slices.Equal(onlyTests, want) {
		t.Errorf("only tests need %q, want %q", onlyTests, want)
	}
}

// goList returns what the go command prints of packages, each line once.
func goList(t *testing.T, format string, args ...string) []string {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-f", format}, args...)...)

	var complaint strings.Builder

	cmd.Stderr = &complaint

	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, complaint.String())
	}

	seen := map[string]bool{}

	return slices.DeleteFunc(strings.Fields(string(out)), func(line string) bool {
		again := seen[line]
		seen[line] = true

		return again
	})
}
