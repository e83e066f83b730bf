package main

import (
	"go/ast"
	"slices"
	"strings"
)

// viewNames are the names that domains give to their views of the store.
var viewNames = []string{"Reader", "Tx", "DB"}

// viewCasts returns where code asserts a wider view than its signature names: any(x).(T), or x.(pkg.Reader)
// with a view of this module. Tests are left out.
func viewCasts(t *tree) []string {
	var out []string

	for _, f := range t.files {
		if f.test {
			continue
		}

		r := newRenderer(f, nil, nil)
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeAssertExpr:
				if n.Type != nil && (fromAny(n.X) || isView(t, r, n.Type)) {
					out = append(out, t.at(f, n.Pos())+" "+source(n))
				}
			case *ast.TypeSwitchStmt:
				for _, clause := range n.Body.List {
					for _, e := range clause.(*ast.CaseClause).List {
						if isView(t, r, e) {
							out = append(out, t.at(f, e.Pos())+" case "+source(e))
						}
					}
				}
			}

			return true
		})
	}

	return out
}

// fromAny reports whether an expression is any(x).
func fromAny(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}

	name, ok := call.Fun.(*ast.Ident)

	return ok && name.Name == "any"
}

// isView reports whether a type is a domain's view of the store.
func isView(t *tree, r *renderer, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return slices.Contains(viewNames, e.Name)
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		if !ok || !slices.Contains(viewNames, e.Sel.Name) {
			return false
		}

		importPath := r.imports[x.Name]

		return importPath == t.module || strings.HasPrefix(importPath, t.module+"/")
	}

	return false
}
