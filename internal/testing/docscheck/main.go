// Command docscheck copies every command and program out of README.md, docs and examples and runs them as a reader
// would, from an empty home directory. The module is served to `go get` by a proxy made from the last commit.
//
//	go run ./internal/testing/docscheck                      every page
//	go run ./internal/testing/docscheck docs/webhooks.md     one page
//
// A comment above each block, which readers do not see, says what to do with it: <!-- check: run -->, and the
// other verbs of page.go. Pages without a mark on every block fail, and so do links to what is not there.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := check(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check checks the links of all pages and runs the pages that are named, or else all.
func check(ctx context.Context, pages []string) error {
	repo, err := os.Getwd()
	if err != nil {
		return err
	}

	all, err := allPages(repo)
	if err != nil {
		return err
	}

	if err := checkLinks(all); err != nil {
		return err
	}

	if len(pages) == 0 {
		pages = all
	}

	scratch, err := os.MkdirTemp("", "docscheck-")
	if err != nil {
		return err
	}
	defer removeAll(scratch)

	env, err := newUser(repo, scratch)
	if err != nil {
		return err
	}

	for _, page := range pages {
		if err := runPage(ctx, repo, scratch, page, env); err != nil {
			return err
		}
	}

	return nil
}

// runPage runs one page and prints how long it took.
func runPage(ctx context.Context, repo, scratch, page string, env []string) error {
	r, err := newRunner(repo, scratch, env)
	if err != nil {
		return err
	}

	begin := time.Now()

	if err := r.page(ctx, page); err != nil {
		return err
	}

	name, err := filepath.Rel(repo, page)
	if err != nil {
		name = page
	}

	fmt.Printf(
		"%-40s %3d blocks checked, %d not run, %s\n",
		name, r.did, r.skipped, time.Since(begin).Round(100*time.Millisecond),
	)

	return nil
}

// allPages returns the pages of the root, of docs and of examples. The first page of a new user comes first, so that
// the time it takes is one with empty caches.
func allPages(repo string) ([]string, error) {
	first := filepath.Join(repo, "docs", "getting-started.md")
	pages := []string{first, filepath.Join(repo, "README.md")}

	for _, pattern := range []string{
		"SECURITY.md",
		"CHANGELOG.md",
		"docs/*.md",
		"docs/proof/*.md",
		"examples/README.md",
		"examples/*/README.md",
	} {
		found, err := filepath.Glob(filepath.Join(repo, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}

		found = slices.DeleteFunc(found, func(page string) bool { return page == first })
		pages = append(pages, found...)
	}

	return pages, nil
}

// checkLinks returns the broken links of all pages, joined.
func checkLinks(pages []string) error {
	var all []error

	for _, page := range pages {
		broken, err := brokenLinks(page)
		if err != nil {
			return err
		}

		for _, link := range broken {
			all = append(all, errors.New(link))
		}
	}

	return errors.Join(all...)
}

// newUser returns the environment of somebody who has Go and nothing else: an empty home, empty caches, and the
// module on a proxy in front of the present one.
func newUser(repo, scratch string) ([]string, error) {
	home, proxy := filepath.Join(scratch, "home"), filepath.Join(scratch, "proxy")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}

	if err := writeProxy(repo, proxy, "v0.1.0"); err != nil {
		return nil, err
	}

	upstream, err := exec.Command("go", "env", "GOPROXY").Output()
	if err != nil {
		return nil, err
	}

	return append(
		os.Environ(),
		"HOME="+home,
		"GOPATH="+filepath.Join(home, "go"),
		"GOMODCACHE="+filepath.Join(home, "go", "pkg", "mod"),
		"GOCACHE="+filepath.Join(home, ".cache", "go-build"),
		"GOENV=off",
		"GOFLAGS=",
		"GOWORK=off",
		"GOPROXY=file://"+proxy+","+strings.TrimSpace(string(upstream)),
		"GONOSUMDB="+modulePath,
	), nil
}

// presentUser returns the present environment with the module on a proxy, under a version that was never used
// before. Nothing is fetched: every other module is taken from the module cache.
func presentUser(repo, scratch string) (env []string, version string, err error) {
	var unique [6]byte

	rand.Read(unique[:])

	version = "v0.1.0-check." + hex.EncodeToString(unique[:])
	proxy := filepath.Join(scratch, "proxy")

	if err := writeProxy(repo, proxy, version); err != nil {
		return nil, "", err
	}

	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return nil, "", err
	}

	downloads := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")

	return append(
		os.Environ(),
		"GOFLAGS=",
		"GOWORK=off",
		"GOPROXY=file://"+proxy+",file://"+downloads,
		"GOSUMDB=off",
	), version, nil
}

// removeAll removes a directory with a module cache, whose files are read-only.
func removeAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o755)
		}

		return nil
	})
	_ = os.RemoveAll(dir)
}
