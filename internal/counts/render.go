package main

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// renderer prints the types of one file on one line, without the names of parameters. It notes whether a
// type of an internal package was mentioned.
type renderer struct {
	imports  map[string]string // import path by local name
	home     *pkg              // package of the file
	foreign  bool              // listed under another package: home's types need its name
	params   map[string]bool   // type parameters in scope
	internal bool
}

// newRenderer returns a renderer for a file of home. Listed says under which package its output appears.
func newRenderer(f *file, home, listed *pkg) *renderer {
	r := &renderer{
		imports: map[string]string{},
		home:    home,
		foreign: home != listed,
		params:  map[string]bool{},
	}

	for _, spec := range f.syntax.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has refused it
		}

		name := packageName(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}

		r.imports[name] = importPath
	}

	return r
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// packageName guesses the name of a package by its path: the last element that is not a major version.
func packageName(importPath string) string {
	name := path.Base(importPath)
	if majorVersion.MatchString(name) && strings.Contains(importPath, "/") {
		name = path.Base(path.Dir(importPath))
	}

	name, _, _ = strings.Cut(name, ".")

	return strings.TrimPrefix(name, "go-")
}

// typ renders a type or a constraint.
func (r *renderer) typ(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return r.ident(e)
	case *ast.SelectorExpr:
		return r.selector(e)
	case *ast.StarExpr:
		return "*" + r.typ(e.X)
	case *ast.ParenExpr:
		return "(" + r.typ(e.X) + ")"
	case *ast.ArrayType:
		if e.Len == nil {
			return "[]" + r.typ(e.Elt)
		}

		return "[" + r.typ(e.Len) + "]" + r.typ(e.Elt)
	case *ast.MapType:
		return "map[" + r.typ(e.Key) + "]" + r.typ(e.Value)
	case *ast.ChanType:
		return map[ast.ChanDir]string{
			ast.SEND:            "chan<- ",
			ast.RECV:            "<-chan ",
			ast.SEND | ast.RECV: "chan ",
		}[e.Dir] + r.typ(e.Value)
	case *ast.Ellipsis:
		if e.Elt == nil {
			return "..."
		}

		return "..." + r.typ(e.Elt)
	case *ast.FuncType:
		return "func" + r.signature(e)
	case *ast.IndexExpr:
		return r.typ(e.X) + "[" + r.typ(e.Index) + "]"
	case *ast.IndexListExpr:
		return r.typ(e.X) + "[" + r.list(e.Indices) + "]"
	case *ast.BinaryExpr:
		return r.typ(e.X) + " " + e.Op.String() + " " + r.typ(e.Y)
	case *ast.UnaryExpr:
		return e.Op.String() + r.typ(e.X)
	case *ast.StructType:
		return "struct{" + strings.Join(r.members(e.Fields, " "), "; ") + "}"
	case *ast.InterfaceType:
		return "interface{" + strings.Join(r.members(e.Methods, ""), "; ") + "}"
	}

	return source(e)
}

func (r *renderer) ident(e *ast.Ident) string {
	if !r.foreign || r.params[e.Name] || types.Universe.Lookup(e.Name) != nil {
		return e.Name
	}

	r.internal = r.internal || isInternal(r.home.path)

	return r.home.name + "." + e.Name
}

func (r *renderer) selector(e *ast.SelectorExpr) string {
	x, ok := e.X.(*ast.Ident)
	if !ok {
		return r.typ(e.X) + "." + e.Sel.Name
	}

	importPath, ok := r.imports[x.Name]
	if !ok {
		return x.Name + "." + e.Sel.Name
	}

	r.internal = r.internal || isInternal(importPath)

	return packageName(importPath) + "." + e.Sel.Name
}

func (r *renderer) list(all []ast.Expr) string {
	out := make([]string, len(all))
	for i, e := range all {
		out[i] = r.typ(e)
	}

	return strings.Join(out, ", ")
}

// members renders the fields of a struct or the methods of an interface that has no name of its own.
func (r *renderer) members(list *ast.FieldList, space string) []string {
	var out []string

	for _, f := range list.List {
		text := r.typ(f.Type)
		if method, ok := f.Type.(*ast.FuncType); ok && space == "" {
			text = r.signature(method)
		}

		if len(f.Names) == 0 {
			out = append(out, text)
		}

		for _, name := range f.Names {
			out = append(out, name.Name+space+text)
		}
	}

	return out
}

// signature renders parameters and results.
func (r *renderer) signature(f *ast.FuncType) string {
	out := "(" + strings.Join(r.tuple(f.Params), ", ") + ")"

	results := r.tuple(f.Results)
	switch len(results) {
	case 0:
		return out
	case 1:
		return out + " " + results[0]
	default:
		return out + " (" + strings.Join(results, ", ") + ")"
	}
}

// tuple renders a list of parameters, a type for each.
func (r *renderer) tuple(list *ast.FieldList) []string {
	if list == nil {
		return nil
	}

	var out []string

	for _, f := range list.List {
		text := r.typ(f.Type)
		for range max(1, len(f.Names)) {
			out = append(out, text)
		}
	}

	return out
}

// typeParams renders type parameters with their constraints and takes their names into scope.
func (r *renderer) typeParams(list *ast.FieldList) string {
	if list == nil {
		return ""
	}

	for _, f := range list.List {
		for _, name := range f.Names {
			r.params[name.Name] = true
		}
	}

	var out []string

	for _, f := range list.List {
		constraint := r.typ(f.Type)
		for _, name := range f.Names {
			out = append(out, name.Name+" "+constraint)
		}
	}

	return "[" + strings.Join(out, ", ") + "]"
}

// initial renders what is known of a value without a declared type: the type of a literal, the function
// called, or a constant's source.
func (r *renderer) initial(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.CompositeLit:
		if e.Type == nil {
			return ""
		}

		return " " + r.typ(e.Type)
	case *ast.UnaryExpr:
		if lit, ok := e.X.(*ast.CompositeLit); ok && e.Op == token.AND {
			return " *" + r.typ(lit.Type)
		}
	case *ast.FuncLit:
		return " " + r.typ(e.Type)
	case *ast.CallExpr:
		if lit, ok := e.Fun.(*ast.FuncLit); ok {
			return " " + strings.Join(r.tuple(lit.Type.Results), ", ")
		}

		called := r.typ(e.Fun)
		if called == "errors.New" || called == "fmt.Errorf" {
			return " error"
		}

		return " = " + called + "(…)"
	}

	return " = " + r.constant(e)
}

// constant renders a constant expression.
func (r *renderer) constant(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok {
		return r.typ(call.Fun) + "(" + r.list(call.Args) + ")"
	}

	return r.typ(e)
}

// source prints an expression as gofmt does, on one line.
func source(e ast.Expr) string {
	var out bytes.Buffer
	if err := printer.Fprint(&out, token.NewFileSet(), e); err != nil {
		return "?"
	}

	return strings.Join(strings.Fields(out.String()), " ")
}
