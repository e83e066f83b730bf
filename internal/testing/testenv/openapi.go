//go:build unix

// This file runs the tools that read the OpenAPI document as others do.

package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// OpenAPI is a directory with an OpenAPI document and the pinned tools that read it.
type OpenAPI struct {
	t   testing.TB
	dir string
}

// NewOpenAPI writes a document into a new directory with the tools within reach.
func NewOpenAPI(t testing.TB, document []byte) *OpenAPI {
	t.Helper()
	skipShort(t, "Node.js")

	if err := fetch(); err != nil {
		t.Fatalf("testenv: %v", err)
	}

	cache, err := CacheDir()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}

	root, err := moduleRoot()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}

	o := &OpenAPI{t, t.TempDir()}
	o.write("openapi.json", document)

	if err := os.Symlink(
		filepath.Join(cache, "openapi", "node_modules"),
		o.path("node_modules"),
	); err != nil {
		t.Fatalf("testenv: %v", err)
	}

	for _, name := range []string{"client.ts", "redocly.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "internal", "testing", "testenv", "openapi", name))
		if err != nil {
			t.Fatalf("testenv: %v", err)
		}

		o.write(name, text)
	}

	return o
}

func (o *OpenAPI) path(name string) string { return filepath.Join(o.dir, name) }

func (o *OpenAPI) write(name string, text []byte) {
	o.t.Helper()

	if err := os.WriteFile(o.path(name), text, 0o600); err != nil {
		o.t.Fatalf("testenv: %v", err)
	}
}

// run runs a program of the tools, or node itself, and returns what it says and whether it succeeded.
func (o *OpenAPI) run(program string, args ...string) (said string, ok bool) {
	o.t.Helper()

	if program != "node" {
		program = filepath.Join("node_modules", ".bin", program)
	}

	cmd := exec.CommandContext(o.t.Context(), program, args...)
	cmd.Dir = o.dir

	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "CI=true")

	out, err := cmd.CombinedOutput()

	return string(out), err == nil
}

// Lint runs redocly with its recommended-strict rules, under which a warning is an error.
func (o *OpenAPI) Lint() (said string, ok bool) { return o.run("redocly", "lint", "openapi.json") }

// UseFromTypeScript generates types from the document, compiles a program strictly against them, and has it call
// the API at an address with a key.
func (o *OpenAPI) UseFromTypeScript(base, key string) (said string, ok bool) {
	steps := [][]string{
		{"openapi-typescript", "openapi.json", "-o", "api.d.ts"},
		{
			"tsc", "--strict", "--target", "es2022", "--module", "node16", "--moduleResolution", "node16",
			"--lib", "es2022,dom", "--skipLibCheck", "client.ts",
		},
		{"node", "client.js", base, key},
	}
	for _, step := range steps {
		if said, ok = o.run(step[0], step[1:]...); !ok {
			return said, false
		}
	}

	return said, true
}
