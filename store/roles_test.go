package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// maxRoleMethods is how many methods an interface of a store declares at most, beside those it embeds.
const maxRoleMethods = 12

// TestRolesAreSmall counts the methods of the interfaces that a store implements: whoever writes one reads
// them role by role.
func TestRolesAreSmall(t *testing.T) {
	seen := 0

	for _, dir := range []string{
		".", "kv", "lease", "../account", "../account/idempotency", "../chain/scan", "../chain/wallet",
		"../event", "../invoice", "../payout", "../settlement", "../webhook",
	} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}

		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}

			ast.Inspect(parsed, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}

				role, ok := spec.Type.(*ast.InterfaceType)
				if !ok {
					return true
				}

				seen++

				if methods := declared(role); methods > maxRoleMethods {
					t.Errorf(
						"%s: %s declares %d methods, at most %d",
						file,
						spec.Name,
						methods,
						maxRoleMethods,
					)
				}

				return true
			})
		}
	}

	if seen < 20 {
		t.Fatalf("%d interfaces were found: the test looks in the wrong place", seen)
	}
}

// declared returns how many methods an interface declares itself.
func declared(role *ast.InterfaceType) (methods int) {
	for _, field := range role.Methods.List {
		if _, ok := field.Type.(*ast.FuncType); ok {
			methods += len(field.Names)
		}
	}

	return methods
}
