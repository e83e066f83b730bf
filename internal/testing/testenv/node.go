//go:build unix

// This file holds the scripts for Node.js.

package testenv

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Node runs a script of this module, named by its path from the module's root, in Node.js with the
// pinned npm packages within reach of require. It gives the script input on standard input and
// returns what it prints.
func Node(t testing.TB, script string, input []byte) []byte {
	t.Helper()
	skipShort(t, "Node.js")

	return runNode(t, nodeCommand(t.Context(), t, "npm", script), script, input)
}

// nodeCommand makes the command that runs a script in Node.js with the packages of one pinned set.
func nodeCommand(ctx context.Context, t testing.TB, set, script string) *exec.Cmd {
	t.Helper()

	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("testenv: %s needs Node.js 20 or later: %v", script, err)
	}

	if err := fetch(); err != nil {
		t.Fatalf("testenv: %v", err)
	}

	root, err := moduleRoot()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}

	cache, err := CacheDir()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}

	cmd := exec.CommandContext(ctx, node, filepath.Join(root, filepath.FromSlash(script)))
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(cache, set, "node_modules"))

	return cmd
}

func runNode(t testing.TB, cmd *exec.Cmd, script string, input []byte) []byte {
	t.Helper()

	cmd.Stdin = bytes.NewReader(input)

	var complaint bytes.Buffer

	cmd.Stderr = &complaint

	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("testenv: %s: %v\n%s", script, err, &complaint)
	}

	return out
}
