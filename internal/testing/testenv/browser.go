//go:build unix

// This file holds the browser and the scripts that drive it.

package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// ChromiumEnv names the environment variable with the path of the browser to run instead of the one on PATH.
const ChromiumEnv = "PAYMENTS_CHROMIUM"

// scriptTimeout bounds a whole script.
const scriptTimeout = 10 * time.Minute

// Chromium returns the path of a Chromium. Under -short the test is skipped; without a browser it fails.
func Chromium(t testing.TB) string {
	t.Helper()
	skipShort(t, "chromium")

	if path := os.Getenv(ChromiumEnv); path != "" {
		return path
	}

	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}

	t.Fatalf("testenv: no Chromium on PATH: install Debian's chromium, or name one in %s", ChromiumEnv)

	return ""
}

// Script runs a script of the test's own with Node and the packages pinned in
// internal/testing/testenv/browser. It is given input as JSON on its standard input and answers into output
// as JSON on its standard output; what it writes to its standard error goes to the test's log.
// Under -short the test is skipped.
func Script(t testing.TB, script string, input, output any) {
	t.Helper()
	skipShort(t, "node")

	if err := fetch(); err != nil {
		t.Fatal("testenv:", err)
	}

	cache, err := CacheDir()
	if err != nil {
		t.Fatal("testenv:", err)
	}

	in, err := json.Marshal(input)
	if err != nil {
		t.Fatal("testenv:", err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), scriptTimeout)
	defer cancel()

	cmd := exec.CommandContext(ctx, "node", script)

	cmd.Env = append(os.Environ(), "PAYMENTS_NODE_MODULES="+filepath.Join(cache, "browser", "node_modules"))
	cmd.Stdin = bytes.NewReader(in)

	var out, log bytes.Buffer

	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.WaitDelay = stopTimeout
	err = cmd.Run()

	if log.Len() > 0 {
		t.Logf("%s:\n%s", script, log.Bytes())
	}

	if err != nil {
		t.Fatalf("testenv: %s: %v", script, err)
	}

	if err := json.Unmarshal(out.Bytes(), output); err != nil {
		t.Fatalf("testenv: %s answered %q: %v", script, out.Bytes(), err)
	}
}
