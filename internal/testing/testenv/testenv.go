//go:build unix

// Package testenv starts the real things that tests talk to: an Ethereum development node (anvil),
// the Solana virtual machine, PostgreSQL and Redis.
//
// Every one of them is a child of the test binary that listens on 127.0.0.1 or on a Unix socket
// only, is known by its process id, and is stopped when the test that asked for it ends; on Linux
// it also ends when the test binary is killed. What cannot be started fails the test with the
// reason. Under `go test -short` the test is skipped instead: that flag asks for tests without
// nodes.
//
// It is one package because every server, of whatever kind, is such a child under the same rules.
//
// This file finds the module and its cache and speaks for the package's common rules.
package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// startTimeout bounds how long a node may take to answer. They take 0.02 to 0.5 s; a loaded
	// machine is given much more.
	startTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
	pollEvery    = 5 * time.Millisecond
)

// Main runs the tests of a package and keeps the PostgreSQL servers they started until the last of
// them has ended. Without it a server ends with the last test that uses it, and the next test
// starts another. Use it as
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
func Main(m *testing.M) int {
	postgres.hold()
	defer postgres.stopAll()

	return m.Run()
}

// skipShort skips a test that needs the named node if tests without nodes were asked for.
func skipShort(t testing.TB, node string) {
	t.Helper()

	if testing.Short() {
		t.Skipf("testenv: needs %s; -short leaves it out", node)
	}
}

// OnlyStores skips a long test of a store that `make stores` and `make citus` run, and `make test` does not.
func OnlyStores(t testing.TB) {
	t.Helper()

	if os.Getenv("PAYMENTS_STORES") == "" {
		t.Skip("testenv: runs by `make stores` (or `make citus`), which set PAYMENTS_STORES")
	}
}

// CacheDir returns the git-ignored directory of fetched nodes and database templates, .cache in the
// root of this module. It is found from the working directory upwards, so nested modules share it.
func CacheDir() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}

	dir := filepath.Join(root, ".cache")

	return dir, os.MkdirAll(dir, 0o755)
}

const modulePath = "github.com/seed-8ee7f392/payments"

// moduleRoot finds the directory whose go.mod is that of this module, and passes by those of nested modules.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module root: %w", err)
	}

	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("find the module root: %w", err)
		}

		line, _, _ := bytes.Cut(text, []byte("\n"))
		if string(bytes.TrimSpace(line)) == "module "+modulePath {
			return dir, nil
		}

		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the module root: no go.mod of %s at or above %s", modulePath, start)
		}
	}
}

// fetch brings the pinned packages into the cache, at most once per test binary; the script locks
// out other binaries.
var fetch = sync.OnceValue(func() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}

	cmd := exec.Command("bash", filepath.Join("scripts", "nodes.sh"))

	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch the pinned packages: %w\n%s", err, out)
	}

	return nil
})

// withLock runs do while it holds the named lock of the cache against every other process.
func withLock(name string, do func() error) error {
	dir, err := CacheDir()
	if err != nil {
		return err
	}

	f, err := os.OpenFile(filepath.Join(dir, name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer f.Close() // which also lets go of the lock

	if err := retryInterrupted(
		func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) },
	); err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}

	return do()
}

func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
