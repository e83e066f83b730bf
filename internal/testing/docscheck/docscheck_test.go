package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A reader of the first page gets to a paid invoice. The modules of others come from the module cache.
func TestGettingStarted(t *testing.T) {
	if testing.Short() {
		t.Skip("docscheck: builds a module; -short leaves it out")
	}

	repo := root(t)
	scratch := t.TempDir()

	env, version, err := presentUser(repo, scratch)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { forget(t, version) })

	err = runPage(t.Context(), repo, scratch, filepath.Join(repo, "docs", "getting-started.md"), env)
	if err != nil {
		t.Fatal(err)
	}
}

// Every block of every page says what is done with it, and every link leads somewhere.
func TestPages(t *testing.T) {
	pages, err := allPages(root(t))
	if err != nil {
		t.Fatal(err)
	}

	for _, page := range pages {
		if _, err := readPage(page); err != nil {
			t.Error(err)
		}
	}

	if err := checkLinks(pages); err != nil {
		t.Error(err)
	}
}

// The first program has at most 42 lines.
func TestGettingStartedIsShort(t *testing.T) {
	blocks, err := readPage(filepath.Join(root(t), "docs", "getting-started.md"))
	if err != nil {
		t.Fatal(err)
	}

	for _, b := range blocks {
		if lines := strings.Count(b.text, "\n"); b.verb == "file" && lines > 42 {
			t.Errorf("%s has %d lines, want at most 42", b.args, lines)
		}
	}
}

func TestPageRefused(t *testing.T) {
	for name, page := range map[string]string{
		"no mark":            "```sh\nls\n```",
		"unknown verb":       "<!-- check: dance -->\n```sh\nls\n```",
		"no reason":          "<!-- check: skip -->\n```sh\nls\n```",
		"no block":           "<!-- check: run -->\n\ntext",
		"no end":             "<!-- check: run -->\n```sh\nls",
		"no mark on a later": "<!-- check: run -->\n```sh\nls\n```\n\n```\nout\n```",
	} {
		if _, err := parsePage("page.md", strings.Split(page, "\n")); err == nil {
			t.Errorf("%s: the page was read", name)
		}
	}
}

func TestMissing(t *testing.T) {
	for _, c := range []struct{ want, got, missing string }{
		{"a\nb", "a\nx\n  b  \n", ""},
		{"b\na", "a\nb", "a"},
		{"id … end", "id 12 end", ""},
		{"id … end", "id 12", "id … end"},
		{"a", "ab", "a"},
		{"a.c", "abc", "a.c"},
	} {
		if got := missing(c.want, c.got); got != c.missing {
			t.Errorf("%q in %q: missing %q, want %q", c.want, c.got, got, c.missing)
		}
	}
}

func TestBrokenLinks(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	text := "# A `code` heading\n[good](#a-code-heading) [bad](#gone) [gone](gone.md) [out](https://example.com)\n" +
		"<img src=\"gone.png\">\n```\n[in a block](gone.md)\n```\n"

	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	broken, err := brokenLinks(page)
	if err != nil {
		t.Fatal(err)
	}

	if len(broken) != 3 {
		t.Errorf("broken links: %q, want #gone, gone.md and gone.png", broken)
	}
}

// root returns the repository's directory.
func root(t *testing.T) string {
	t.Helper()

	dir, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}

	return dir
}

// forget removes a version of the module from the module cache.
func forget(t *testing.T, version string) {
	t.Helper()

	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Error(err)
		return
	}

	cache := strings.TrimSpace(string(out))
	removeAll(filepath.Join(cache, filepath.FromSlash(modulePath)+"@"+version))

	files, err := filepath.Glob(
		filepath.Join(cache, "cache", "download", filepath.FromSlash(modulePath), "@v", version+"*"),
	)
	if err != nil {
		t.Error(err)
	}

	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
}
