package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// tree is the parsed source of a checkout: every module of it but the one that only names tools.
type tree struct {
	module string // path of the root module
	fset   *token.FileSet
	files  []*file // sorted by path
	byPath map[string]*pkg
}

// pkg is one package of the root module, without its tests.
type pkg struct {
	path  string // import path
	name  string
	files []*file
}

// file is one Go file.
type file struct {
	path   string // from the root of the checkout, with slashes
	text   string
	syntax *ast.File
	test   bool
	nested bool // belongs to a module below the root module
	built  bool // built on Linux; others are left out of the surface
}

// dir returns the directory of the file.
func (f *file) dir() string { return path.Dir(f.path) }

// lines returns the file's lines without their ends.
func (f *file) lines() []string {
	return strings.Split(strings.TrimSuffix(f.text, "\n"), "\n")
}

// at formats a position as path:line.
func (t *tree) at(f *file, pos token.Pos) string {
	return fmt.Sprintf("%s:%d", f.path, t.line(pos))
}

// line returns the line of a position.
func (t *tree) line(pos token.Pos) int { return t.fset.Position(pos).Line }

// skipped are the directories that hold no code of ours. Directories with a leading dot are skipped too.
var skipped = []string{"node_modules", "testdata", "vendor"}

// load parses the checkout in root.
func load(root string) (*tree, error) {
	module, err := modulePath(root)
	if err != nil {
		return nil, err
	}

	t := &tree{
		module: module,
		fset:   token.NewFileSet(),
		byPath: map[string]*pkg{},
	}

	nested := map[string]bool{} // directories inside a nested module
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}

		rel = filepath.ToSlash(rel)

		if d.IsDir() {
			hidden := rel != "." && strings.HasPrefix(d.Name(), ".")
			if hidden || slices.Contains(skipped, d.Name()) || rel == "tools" {
				return fs.SkipDir
			}

			_, err := os.Stat(filepath.Join(name, "go.mod"))
			nested[rel] = nested[path.Dir(rel)] || err == nil && rel != "."

			return nil
		}

		if !strings.HasSuffix(rel, ".go") {
			return nil
		}

		return t.add(root, rel, nested[path.Dir(rel)])
	})

	return t, err
}

// add parses one file.
func (t *tree) add(root, rel string, nested bool) error {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(rel)))
	if err != nil {
		return err
	}

	syntax, err := parser.ParseFile(t.fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}

	// The surface is that of one platform, so that it is the same wherever it is listed.
	platform := build.Default
	platform.GOOS, platform.GOARCH, platform.CgoEnabled = "linux", "amd64", true

	built, err := platform.MatchFile(filepath.Join(root, filepath.FromSlash(path.Dir(rel))), path.Base(rel))
	if err != nil {
		return err
	}

	f := &file{
		path:   rel,
		text:   string(text),
		syntax: syntax,
		test:   strings.HasSuffix(rel, "_test.go"),
		nested: nested,
		built:  built,
	}

	t.files = append(t.files, f)
	if f.test || f.nested {
		return nil
	}

	importPath := path.Join(t.module, f.dir())

	p := t.byPath[importPath]
	if p == nil {
		p = &pkg{
			path: importPath,
			name: syntax.Name.Name,
		}
		t.byPath[importPath] = p
	}

	p.files = append(p.files, f)

	return nil
}

// modulePath reads the module's path from the go.mod in dir.
func modulePath(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}

	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return strings.Trim(strings.TrimSpace(name), `"`), nil
		}
	}

	return "", errors.New("go.mod names no module")
}

// public returns the importable packages of the root module, sorted by path.
func (t *tree) public() []*pkg {
	var out []*pkg

	for _, p := range t.byPath {
		if p.name != "main" && !isInternal(p.path) {
			out = append(out, p)
		}
	}

	slices.SortFunc(out, func(a, b *pkg) int { return strings.Compare(a.path, b.path) })

	return out
}

// label returns the package's path below the module, and the module's last element for the root package.
func (t *tree) label(p *pkg) string {
	if p.path == t.module {
		return path.Base(t.module)
	}

	return strings.TrimPrefix(p.path, t.module+"/")
}

// isInternal reports whether only some packages may import the path.
func isInternal(importPath string) bool {
	return slices.Contains(strings.Split(importPath, "/"), "internal")
}
