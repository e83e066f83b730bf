package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inlineCode   = regexp.MustCompile("`((?:make|go) [^`]+)`")
	benchPattern = regexp.MustCompile(`-bench (\w+)`)
	runPattern   = regexp.MustCompile(`-run (\w+)`)
	packageArg   = regexp.MustCompile(`(?:^| )\./([\w./-]+)`)
)

// The examples of the package documentation compile for a reader: they import nothing that only this module may.
func TestExamplesImportNothingInternal(t *testing.T) {
	repo := root(t)
	files := 0

	err := filepath.WalkDir(repo, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}

		if name := entry.Name(); entry.IsDir() && (name == "internal" || name == ".cache" || name == ".git") {
			return filepath.SkipDir
		}

		if !strings.HasPrefix(entry.Name(), "example_") || !strings.HasSuffix(path, "_test.go") {
			return nil
		}

		files++

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}

		for _, imported := range file.Imports {
			if strings.Contains(imported.Path.Value, "/internal/") {
				t.Errorf("%s imports %s, which a reader cannot", path, imported.Path.Value)
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if files < 5 {
		t.Errorf("%d files with examples were found, want at least 5", files)
	}
}

// A command in running text names what is there: a target of the Makefile, a package, a test or a benchmark of it.
func TestInlineCommands(t *testing.T) {
	repo := root(t)

	pages, err := allPages(repo)
	if err != nil {
		t.Fatal(err)
	}

	commands := 0

	for _, page := range pages {
		text, err := prose(page)
		if err != nil {
			t.Fatal(err)
		}

		for _, found := range inlineCode.FindAllStringSubmatch(text, -1) {
			commands++

			if wrong := wrongCommand(t, repo, found[1]); wrong != "" {
				t.Errorf("%s: `%s`: %s", page, found[1], wrong)
			}
		}
	}

	if commands < 10 {
		t.Errorf("%d commands were found in running text, want at least 10", commands)
	}
}

func TestWrongCommand(t *testing.T) {
	for command, wrong := range map[string]bool{
		"make docs":       false,
		"make gone":       true,
		"go mod tidy":     false,
		"go test ./gone":  true,
		"go test ./...":   false,
		"go run ./gone -": true,
		"go test ./internal/testing/docscheck -run TestWrongCommand":       false,
		"go test ./internal/testing/docscheck -run TestNoSuchTest":         true,
		"go test ./internal/testing/docscheck -run '^$' -bench NoSuchOne":  true,
		"go test ./httpapi -run TestVersionOneOnlyGrows -update":           false,
		"go test -run xxx -bench BenchmarkNothing ./internal/testing/e2e/": true,
	} {
		if got := wrongCommand(t, root(t), command); (got != "") != wrong {
			t.Errorf("%s: found %q wrong", command, got)
		}
	}
}

// wrongCommand returns what a command of make or go names that is not there.
func wrongCommand(t *testing.T, repo, command string) string {
	t.Helper()

	words := strings.Fields(command)

	if words[0] == "make" {
		makefile, err := os.ReadFile(filepath.Join(repo, "Makefile"))
		if err != nil {
			t.Fatal(err)
		}

		if !strings.Contains(string(makefile), "\n"+words[1]+":") {
			return "the Makefile has no such target"
		}

		return ""
	}

	at := packageArg.FindStringSubmatch(command)
	if at == nil || strings.Contains(at[1], "...") {
		return ""
	}

	sources, err := filepath.Glob(filepath.Join(repo, filepath.FromSlash(at[1]), "*.go"))
	if err != nil {
		t.Fatal(err)
	}

	if len(sources) == 0 {
		return "there is no such package"
	}

	for _, named := range []struct {
		pattern *regexp.Regexp
		prefix  string
	}{{benchPattern, "func Benchmark"}, {runPattern, "func "}} {
		name := named.pattern.FindStringSubmatch(command)
		if name == nil || !strings.HasPrefix(command, "go test") || name[1] == "xxx" {
			continue
		}

		declared := named.prefix + strings.TrimPrefix(name[1], "Benchmark")
		if !declares(t, sources, declared) {
			return "the package has no " + strings.TrimPrefix(declared, "func ")
		}
	}

	return ""
}

// declares reports whether one of the files has a declaration that begins so.
func declares(t *testing.T, files []string, beginning string) bool {
	t.Helper()

	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		if strings.Contains(string(content), "\n"+beginning) {
			return true
		}
	}

	return false
}
