//go:build unix

package httpapi_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// calls are what every generated client does.
const calls = "create, get, list with two statuses, and a typed error"

// TestDocumentIsStrictlyLinted: redocly has nothing to say, and says something of a document with a fault.
func TestDocumentIsStrictlyLinted(t *testing.T) {
	document := open(t, nil).do(t, request{method: "GET", path: "/v1/openapi.json", key: "-"}).body

	if said, ok := testenv.NewOpenAPI(t, document).
		Lint(); !ok ||
		!strings.Contains(said, "description is valid.") {
		t.Errorf("redocly says:\n%s", said)
	}

	faulty := bytes.Replace(document, []byte(`"license"`), []byte(`"x-license"`), 1)
	if said, ok := testenv.NewOpenAPI(t, faulty).Lint(); ok {
		t.Errorf("a document without a licence passes:\n%s", said)
	}
}

// TestGeneratedTypeScriptClient uses openapi-typescript and openapi-fetch with their default settings.
func TestGeneratedTypeScriptClient(t *testing.T) {
	s := open(t, nil)
	server := httptest.NewServer(s.handler)
	t.Cleanup(server.Close)

	document := s.do(t, request{method: "GET", path: "/v1/openapi.json", key: "-"}).body

	said, ok := testenv.NewOpenAPI(t, document).UseFromTypeScript(server.URL, s.key)
	if !ok || !strings.Contains(said, calls) {
		t.Errorf("the client says:\n%s", said)
	}
}

// TestGeneratedGoClient uses oapi-codegen, without its pruning of schemas, at the version that testdata/oapi pins.
func TestGeneratedGoClient(t *testing.T) {
	if testing.Short() {
		t.Skip("generates and compiles a client")
	}

	s := open(t, nil)
	server := httptest.NewServer(s.handler)
	t.Cleanup(server.Close)

	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/oapi")); err != nil {
		t.Fatal(err)
	}

	document := s.do(t, request{method: "GET", path: "/v1/openapi.json", key: "-"}).body
	if err := os.WriteFile(filepath.Join(dir, "openapi.json"), document, 0o600); err != nil {
		t.Fatal(err)
	}

	if err := os.Mkdir(filepath.Join(dir, "api"), 0o700); err != nil {
		t.Fatal(err)
	}

	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir

		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")

		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}

		return string(out)
	}

	run(
		"tool",
		"oapi-codegen",
		"-package",
		"api",
		"-generate",
		"types,client,skip-prune", // it drops the schemas that only webhooks use
		"-o",
		"api/api.go",
		"openapi.json",
	)

	if said := run("run", ".", server.URL, s.key); !strings.Contains(said, calls) {
		t.Errorf("the client says:\n%s", said)
	}
}
