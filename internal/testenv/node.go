//go:build unix

// This file holds the scripts for Node.js.

package testenv

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Node runs a script of this module, named by its path from the module's root, in Node.js with the pinned npm packages within reach
// of require. It gives the script input on standard input and returns what it prints.
func Node(t testing.TB, script string, input []byte) []byte {
	t.Helper()
	skipShort(t, "Node.js")
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
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(root, filepath.FromSlash(script)))
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(cache, "npm", "node_modules"))
	cmd.Stdin = bytes.NewReader(input)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("testenv: %s: %v\n%s", script, err, &complaint)
	}
	return out
}
