package main

import (
	"go/ast"
	"slices"
)

// promote lists the exported methods and fields of the type named target in p under owner.
func (l *lister) promote(p *pkg, target, owner string, seen []string) {
	id := p.path + "." + target
	if slices.Contains(seen, id) {
		return
	}

	seen = append(slices.Clone(seen), id)

	for _, f := range p.files {
		if !f.built {
			continue
		}

		for _, decl := range f.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil || !decl.Name.IsExported() {
					continue
				}

				if name, _ := receiver(decl); name == target {
					l.method(f, p, decl, owner)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.Name == target {
						l.members(f, p, owner, spec.Type, seen)
					}
				}
			}
		}
	}
}

// members lists the fields or methods of a type of home under owner.
func (l *lister) members(f *file, home *pkg, owner string, e ast.Expr, seen []string) {
	switch e := e.(type) {
	case *ast.StructType:
		l.fields(f, home, owner, e, seen)
	case *ast.InterfaceType:
		l.interfaceMethods(f, home, owner, e)
	}
}

// resolve returns the package and name of a type of the root module, and "" for any other type.
func (t *tree) resolve(r *renderer, e ast.Expr) (*pkg, string) {
	switch e := e.(type) {
	case *ast.StarExpr:
		return t.resolve(r, e.X)
	case *ast.IndexExpr:
		return t.resolve(r, e.X)
	case *ast.IndexListExpr:
		return t.resolve(r, e.X)
	case *ast.Ident:
		return r.home, e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			if p := t.byPath[r.imports[x.Name]]; p != nil {
				return p, e.Sel.Name
			}
		}
	}

	return nil, ""
}
