package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// kind is what an entry of the surface is.
type kind int

const (
	function kind = iota
	method        // of a concrete type
	typ
	value // constant or variable
	interfaceMethod
	field
	embedded
	unexported // notes unexported methods of an interface, and is counted nowhere
)

// entry is one exported identifier of a public package.
type entry struct {
	pkg      string // as label returns it
	kind     kind
	text     string // declaration on one line
	owner    string // type of a method, field or embedded type
	promoted bool   // declared for an embedded type that has no public name
	internal bool   // mentions a type of an internal package
	results  []ast.Expr
	noParams bool
	renderer *renderer // resolves the results' packages
	at       string
}

// surface returns what an importer can name, in the order of the source.
func surface(t *tree) []entry {
	var out []entry

	for _, p := range t.public() {
		l := lister{
			tree:   t,
			listed: p,
		}
		l.list()

		out = append(out, l.entries...)
	}

	return out
}

// apiLines returns the surface as sorted lines.
func apiLines(t *tree) []string {
	var out []string
	for _, e := range surface(t) {
		out = append(out, "pkg "+e.pkg+", "+e.text)
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// lister collects the surface of one package.
type lister struct {
	tree     *tree
	listed   *pkg
	promoted bool // what is listed now comes from an embedded type
	entries  []entry
}

func (l *lister) list() {
	for _, f := range l.listed.files {
		if !f.built {
			continue
		}

		for _, decl := range f.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				l.fun(f, decl)
			case *ast.GenDecl:
				l.gen(f, decl)
			}
		}
	}
}

// add appends an entry that r has rendered.
func (l *lister) add(f *file, pos token.Pos, r *renderer, e entry) {
	e.pkg = l.tree.label(l.listed)
	e.internal = e.internal || r.internal
	e.promoted = l.promoted
	e.renderer = r
	e.at = l.tree.at(f, pos)
	l.entries = append(l.entries, e)
}

// fun lists a function, or a method of an exported type.
func (l *lister) fun(f *file, decl *ast.FuncDecl) {
	if !decl.Name.IsExported() {
		return
	}

	if decl.Recv != nil {
		if name, _ := receiver(decl); ast.IsExported(name) {
			l.method(f, l.listed, decl, name)
		}

		return
	}

	r := newRenderer(f, l.listed, l.listed)
	l.add(f, decl.Pos(), r, entry{
		kind: function,
		text: "func " + decl.Name.Name + r.typeParams(decl.Type.TypeParams) + r.signature(decl.Type),
	})
}

// method lists a method under the named type, which may be an alias of its receiver or embed it.
func (l *lister) method(f *file, home *pkg, decl *ast.FuncDecl, owner string) {
	r := newRenderer(f, home, l.listed)

	_, params := receiver(decl)
	for _, p := range params {
		r.params[p] = true
	}

	shown := owner
	if len(params) > 0 {
		shown += "[" + strings.Join(params, ", ") + "]"
	}

	if _, pointer := decl.Recv.List[0].Type.(*ast.StarExpr); pointer {
		shown = "*" + shown
	}

	e := entry{
		kind:     method,
		text:     fmt.Sprintf("method (%s) %s%s", shown, decl.Name.Name, r.signature(decl.Type)),
		owner:    owner,
		noParams: decl.Type.Params.NumFields() == 0,
	}
	if decl.Type.Results != nil {
		for _, result := range decl.Type.Results.List {
			e.results = append(e.results, result.Type)
		}
	}

	l.add(f, decl.Pos(), r, e)
}

// receiver returns the name of the receiver's type and of its type parameters.
func receiver(decl *ast.FuncDecl) (name string, params []string) {
	e := decl.Recv.List[0].Type
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}

	var indices []ast.Expr

	switch generic := e.(type) {
	case *ast.IndexExpr:
		e, indices = generic.X, []ast.Expr{generic.Index}
	case *ast.IndexListExpr:
		e, indices = generic.X, generic.Indices
	}

	for _, i := range indices {
		params = append(params, source(i))
	}

	return source(e), params
}

// gen lists types, constants and variables.
func (l *lister) gen(f *file, decl *ast.GenDecl) {
	var last *ast.ValueSpec // whose type and values a constant without its own repeats

	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				l.typ(f, spec)
			}
		case *ast.ValueSpec:
			if decl.Tok == token.VAR || spec.Type != nil || len(spec.Values) > 0 {
				last = spec
			}

			l.values(f, decl.Tok, spec, last)
		}
	}
}

func (l *lister) values(f *file, tok token.Token, spec, typed *ast.ValueSpec) {
	for i, name := range spec.Names {
		if !name.IsExported() {
			continue
		}

		r := newRenderer(f, l.listed, l.listed)

		text := tok.String() + " " + name.Name
		if typed.Type != nil {
			text += " " + r.typ(typed.Type)
		}

		if i < len(spec.Values) {
			switch {
			case tok == token.CONST && !strings.Contains(source(spec.Values[i]), "iota"):
				text += " = " + r.constant(spec.Values[i])
			case tok == token.VAR && typed.Type == nil:
				text += r.initial(spec.Values[i])
			}
		}

		l.add(f, name.Pos(), r, entry{
			kind: value,
			text: text,
		})
	}
}

// typ lists a type with its exported fields or methods.
func (l *lister) typ(f *file, spec *ast.TypeSpec) {
	r := newRenderer(f, l.listed, l.listed)
	name := spec.Name.Name
	text := "type " + name + r.typeParams(spec.TypeParams)

	if spec.Assign.IsValid() {
		text += " = " + r.typ(spec.Type)
		l.add(f, spec.Pos(), r, entry{
			kind: typ,
			text: text,
		})

		if p, target := l.tree.resolve(r, spec.Type); target != "" && isInternal(p.path) {
			l.promote(p, target, name, nil)
		}

		return
	}

	switch e := spec.Type.(type) {
	case *ast.StructType:
		l.add(f, spec.Pos(), r, entry{
			kind: typ,
			text: text + " struct",
		})
		l.fields(f, l.listed, name, e, nil)
	case *ast.InterfaceType:
		l.add(f, spec.Pos(), r, entry{
			kind: typ,
			text: text + " interface",
		})
		l.interfaceMethods(f, l.listed, name, e)
	default:
		l.add(f, spec.Pos(), r, entry{
			kind: typ,
			text: text + " " + r.typ(spec.Type),
		})
	}
}

// fields lists the exported fields of a struct of home under the type owner. What is embedded from an
// internal package, or from a type without an exported name, is listed as its own.
func (l *lister) fields(f *file, home *pkg, owner string, s *ast.StructType, seen []string) {
	for _, spec := range s.Fields.List {
		for _, name := range spec.Names {
			if !name.IsExported() {
				continue
			}

			r := newRenderer(f, home, l.listed)
			l.add(f, name.Pos(), r, entry{
				kind:  field,
				text:  fmt.Sprintf("type %s struct, %s %s", owner, name.Name, r.typ(spec.Type)),
				owner: owner,
			})
		}

		if len(spec.Names) > 0 {
			continue
		}

		r := newRenderer(f, home, l.listed)
		text := r.typ(spec.Type)

		p, target := l.tree.resolve(r, spec.Type)
		if target == "" || ast.IsExported(target) {
			l.add(f, spec.Pos(), r, entry{
				kind:  embedded,
				text:  fmt.Sprintf("type %s struct, embedded %s", owner, text),
				owner: owner,
			})
		}

		if target != "" && (isInternal(p.path) || !ast.IsExported(target)) {
			before := l.promoted
			l.promoted = true
			l.promote(p, target, owner, seen)
			l.promoted = before
		}
	}
}

// interfaceMethods lists the exported methods of an interface of home under the type owner, and what it
// embeds. One that others cannot implement has a line that says so.
func (l *lister) interfaceMethods(f *file, home *pkg, owner string, i *ast.InterfaceType) {
	for _, spec := range i.Methods.List {
		r := newRenderer(f, home, l.listed)

		signature, isMethod := spec.Type.(*ast.FuncType)
		if !isMethod {
			l.add(f, spec.Pos(), r, entry{
				kind:  embedded,
				text:  fmt.Sprintf("type %s interface, embedded %s", owner, r.typ(spec.Type)),
				owner: owner,
			})

			continue
		}

		for _, name := range spec.Names {
			if !name.IsExported() {
				l.add(f, name.Pos(), newRenderer(f, home, l.listed), entry{
					kind:  unexported,
					text:  fmt.Sprintf("type %s interface, unexported methods", owner),
					owner: owner,
				})

				continue
			}

			l.add(f, name.Pos(), r, entry{
				kind:  interfaceMethod,
				text:  fmt.Sprintf("type %s interface, %s%s", owner, name.Name, r.signature(signature)),
				owner: owner,
			})
		}
	}
}
