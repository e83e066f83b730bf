package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const fixture = "testdata/project"

func mustLoad(t *testing.T, dir string) *tree {
	t.Helper()

	tr, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}

	return tr
}

func TestFiguresOfTheFixture(t *testing.T) {
	got := map[string]string{}
	for _, f := range measure(mustLoad(t, fixture)) {
		got[strings.TrimSpace(f.name)] = f.value
	}

	for _, c := range [][2]string{
		{"public functions, methods, types and values", "19"},

		{"public functions", "1"},                 // Narrowed
		{"public methods of concrete types", "6"}, // 4 of Engine, Swap, Grow
		{"public types", "8"},
		{"public constants and variables", "4"},
		{"public methods promoted from types without a public name", "1"}, // Grow of Thing
		{"public methods of interfaces", "3"},
		{"public struct fields and embedded types", "7"},
		{"public methods of Engine", "4"},
		{"public fields of Engine", "1"},
		{"methods of Engine that return a store, sealer, log or clock", "3"},
		{"public signatures with an internal type", "3"}, // Alias, Grow, Part in Thing
		{"casts between domain views", "3"},
		{"lines over 120 columns", "1"},
		{"blank lines in function bodies", "3.4 %"},
		{"bodies over 8 lines without a blank line", "1"},
		{"multi-line literals with several fields on a line", "50.0 %"},
		{"functions over 60 lines", "0"},
		{"files over 400 lines", "0"},
		{"packages over 20 files without a reason", "0"},
		{"forbidden words", "6"},
		{"forbidden words in identifiers and file names", "4"},
		{"forbidden words in comments", "2"},
	} {
		name, want := c[0], c[1]
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
}

func TestSurfaceOfTheFixture(t *testing.T) {
	got := apiLines(mustLoad(t, fixture))

	want := readLines(t, "testdata/api.txt")
	if diff := firstDifference(got, want); diff != "" {
		t.Error(diff)
	}
}

func TestLongCodeIsCounted(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "go.mod", "module example.com/long\n")
	write(t, dir, "long/long.go", "package long\n\nfunc f() {\n"+strings.Repeat("\t_ = 1\n", 601)+"}\n")

	for i := range 21 {
		write(t, dir, fmt.Sprintf("many/f%d.go", i), "package many\n")
		write(t, dir, fmt.Sprintf("reasoned/f%d.go", i), "package reasoned\n")
	}

	write(t, dir, "reasoned/doc.go", "// Package reasoned is one\n// package because.\npackage reasoned\n")

	got := map[string]string{}
	for _, f := range shapeFigures(mustLoad(t, dir)) {
		got[f.name] = f.value
	}

	for name, want := range map[string]string{
		"functions over 60 lines":                 "1",
		"files over 400 lines":                    "1",
		"files over 600 lines":                    "1",
		"packages over 20 files without a reason": "1: many (21), reasoned (22), with a reason",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
}

func TestWordsAreSplit(t *testing.T) {
	for text, want := range map[string]string{
		"blockSink":           "block sink",
		"HTTPServerOfIDs":     "http server of i ds",
		"a sink, TOLD; x2y":   "a sink told x y",
		"snake_case-and.dots": "snake case and dots",
		"":                    "",
		"größer":              "gr er",
	} {
		if got := strings.Join(splitWords(text), " "); got != want {
			t.Errorf("%q is split into %q, want %q", text, got, want)
		}
	}
}

func TestNoForbiddenWordIsListedTwice(t *testing.T) {
	seen := map[string]bool{}

	for _, group := range glossary {
		for _, word := range group.words {
			if key := fmt.Sprint(group.scope, word); seen[key] {
				t.Errorf("%s is listed twice", word)
			} else {
				seen[key] = true
			}
		}
	}
}

func readLines(t *testing.T, name string) []string {
	t.Helper()

	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()

	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// firstDifference names a line that only one of two sorted listings has, or returns "".
func firstDifference(got, want []string) string {
	for _, line := range got {
		if !slices.Contains(want, line) {
			return "not listed: " + line
		}
	}

	for _, line := range want {
		if !slices.Contains(got, line) {
			return "not in the code: " + line
		}
	}

	return ""
}
