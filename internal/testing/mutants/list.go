package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed mutants.json
var listed []byte

// mutant is one fault to plant.
type mutant struct {
	// ID is unique and says in a few words what is wrong.
	ID string `json:"id"`
	// Rule is the rule of money that it breaks.
	Rule string `json:"rule"`
	// File is the file that is mutated, from the root of the module.
	File string `json:"file"`
	// Func is the function that Old is in: its name, with that of its receiver's type in front; or a
	// variable or constant of the package.
	Func string `json:"func"`
	// Old is the snippet that New replaces.
	Old string `json:"old"`
	New string `json:"new"`
	// With are further places in other files, where one alone is made good by another.
	With []place `json:"with,omitempty"`
	// Package is where the test is that must fail, as the go command takes it at the root of the module.
	Package string `json:"package"`
	// Test selects that test: ^TestName$.
	Test string `json:"test"`
	// Simulated is set for the faults that internal/testing/simulation must find.
	Simulated bool `json:"simulated,omitempty"`
	// Bias names the bias of the plans that find it; empty: none. See docs/proof/testing.md.
	Bias string `json:"bias,omitempty"`
	// Row is the row of docs/proof/pitfalls.md that the mutant brings back; 0: none.
	Row int `json:"row,omitempty"`
}

// place is a snippet in a function of a file; see mutant.
type place struct {
	File string `json:"file"`
	Func string `json:"func"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// parts returns a mutant for each place that the fault changes, under its ID.
func (m mutant) parts() []mutant {
	all := []mutant{m}

	for _, with := range m.With {
		part := m
		part.File, part.Func, part.Old, part.New = with.File, with.Func, with.Old, with.New
		all = append(all, part)
	}

	return all
}

// oneTest is the form of a pattern that selects one test.
var oneTest = regexp.MustCompile(`^\^Test\w+\$$`)

// load reads the list.
func load() ([]mutant, error) {
	var all []mutant
	if err := json.Unmarshal(listed, &all); err != nil {
		return nil, fmt.Errorf("reading mutants.json: %w", err)
	}

	return all, nil
}

// moduleRoot finds the directory of the module that holds the list, at or above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}

	for {
		list := filepath.Join(dir, "internal", "testing", "mutants", "mutants.json")
		if exists(filepath.Join(dir, "go.mod")) && exists(list) {
			return dir, nil
		}

		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("the working directory is not inside the module")
		}

		dir = up
	}
}

// moduleOf returns the directory of the module that a package is part of, and the package as seen from there.
func moduleOf(root, pkg string) (dir, local string) {
	at := filepath.Join(root, filepath.FromSlash(pkg))
	for dir = at; dir != root && !exists(filepath.Join(dir, "go.mod")); {
		dir = filepath.Dir(dir)
	}

	local, err := filepath.Rel(dir, at)
	if err != nil {
		return root, pkg
	}

	return dir, "./" + filepath.ToSlash(local)
}

// exists reports whether there is such a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// check makes sure that the mutant can be planted and that its test is there.
func (m mutant) check(root string) error {
	for _, part := range m.parts() {
		if _, err := part.mutate(root); err != nil {
			return err
		}
	}

	return m.checkTest(root)
}

// mutate returns the source of the mutated file.
func (m mutant) mutate(root string) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
	if err != nil {
		return nil, err
	}

	from, to, err := declaration(src, m.Func)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.File, err)
	}

	mutated, err := replace(src, from, to, m.Old, m.New)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", m.File, m.Func, err)
	}

	if _, err := parser.ParseFile(
		token.NewFileSet(), m.File, mutated, parser.SkipObjectResolution,
	); err != nil {
		return nil, fmt.Errorf("the mutated file does not parse: %w", err)
	}

	return mutated, nil
}

// declaration finds what is declared by a name: the offsets of a function's body, or of the declaration of a
// variable or constant.
func declaration(src []byte, name string) (from, to int, err error) {
	files := token.NewFileSet()

	file, err := parser.ParseFile(files, "", src, parser.SkipObjectResolution)
	if err != nil {
		return 0, 0, err
	}

	found := 0
	take := func(n ast.Node) {
		found++
		from, to = files.Position(n.Pos()).Offset, files.Position(n.End()).Offset
	}

	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if nameOf(d) == name && d.Body != nil {
				take(d.Body)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && v.Names[0].Name == name {
					take(v)
				}
			}
		}
	}

	if found != 1 {
		return 0, 0, fmt.Errorf("%d declarations of %s", found, name)
	}

	return from, to, nil
}

// functionBody finds the body of a function, and reports whether it has results.
func functionBody(src []byte, name string) (from, to int, results bool, err error) {
	files := token.NewFileSet()

	file, err := parser.ParseFile(files, "", src, parser.SkipObjectResolution)
	if err != nil {
		return 0, 0, false, err
	}

	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if is && nameOf(f) == name && f.Body != nil {
			from, to = files.Position(f.Body.Pos()).Offset, files.Position(f.Body.End()).Offset

			return from, to, f.Type.Results.NumFields() > 0, nil
		}
	}

	return 0, 0, false, fmt.Errorf("%s is no function", name)
}

// packageClauseEnd returns the offset behind a file's package clause.
func packageClauseEnd(src []byte) (int, error) {
	files := token.NewFileSet()

	file, err := parser.ParseFile(files, "", src, parser.PackageClauseOnly)
	if err != nil {
		return 0, err
	}

	return files.Position(file.Name.End()).Offset, nil
}

// nameOf returns the name of a function, with its receiver's type in front.
func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}

	of := d.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// testName is the name of the test.
func (m mutant) testName() string {
	return strings.TrimSuffix(strings.TrimPrefix(m.Test, "^"), "$")
}

// checkTest makes sure that the test's package declares it.
func (m mutant) checkTest(root string) error {
	name := m.testName()
	if !oneTest.MatchString(m.Test) {
		return fmt.Errorf("the test %q is not named as ^TestName$", m.Test)
	}

	tests, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(m.Package), "*_test.go"))
	if err != nil {
		return err
	}

	for _, path := range tests {
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		if strings.Contains(string(src), "\nfunc "+name+"(t *testing.T) {") {
			return nil
		}
	}

	return fmt.Errorf("package %s has no test %s", m.Package, name)
}
