//go:build unix

// This file runs tronweb, the second opinion on Tron.

package testenv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// Tronweb runs a script of internal/testing/testenv/tron with the pinned tronweb: request goes in as JSON,
// and what it writes is decoded into answer.
func Tronweb(t testing.TB, script string, request, answer any) {
	t.Helper()
	skipShort(t, "Node and tronweb")

	if err := runScript("tron", script, request, answer); err != nil {
		t.Fatalf("testenv: %s: %v", script, err)
	}
}

// runScript runs a script of internal/testing/testenv/SET with the packages that the set pins.
func runScript(set, script string, request, answer any) error {
	if err := fetch(); err != nil {
		return err
	}

	root, err := moduleRoot()
	if err != nil {
		return err
	}

	dir, err := CacheDir()
	if err != nil {
		return err
	}

	input, err := json.Marshal(request)
	if err != nil {
		return err
	}

	cmd := exec.Command("node", filepath.Join(root, "internal", "testing", "testenv", set, script))
	cmd.Env = append(cmd.Environ(), "NODE_PATH="+filepath.Join(dir, set, "node_modules"))
	cmd.Stdin = bytes.NewReader(input)

	var errors bytes.Buffer

	cmd.Stderr = &errors

	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, errors.Bytes())
	}

	return json.Unmarshal(out, answer)
}
