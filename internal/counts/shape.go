package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of the code's shape.
const (
	columns      = 120 // of a line, a tab being tabWidth wide
	tabWidth     = 4
	wall         = 8 // lines of a body without a blank line
	longFunction = 60
	longFile     = 400
	longestFile  = 600
	manyFiles    = 20 // in one package, tests apart
)

// shape is what is counted in the layout of the code.
type shape struct {
	wide, walls, functions, files, longest []string

	bodyLines, blankLines int

	literals int      // over several lines
	crowded  []string // with several fields on a line
}

// shapeFigures counts lines, bodies, literals and files.
func shapeFigures(t *tree) []figure {
	var s shape

	for _, f := range t.files {
		lines := f.lines()
		s.addLines(f, lines)
		s.addLiterals(t, f)

		if f.test {
			continue
		}

		s.addBodies(t, f, lines)
		s.addLength(f, len(lines))
	}

	return []figure{
		count(fmt.Sprintf("lines over %d columns", columns), "0", s.wide),
		{
			name:  "blank lines in function bodies",
			value: percent(s.blankLines, s.bodyLines),
			goal:  ">= 6 %",
		},
		count(fmt.Sprintf("bodies over %d lines without a blank line", wall), "", s.walls),
		{
			name:  "multi-line literals with several fields on a line",
			value: percent(len(s.crowded), s.literals),
			goal:  "0 %",
			items: s.crowded,
		},
		count(fmt.Sprintf("functions over %d lines", longFunction), "<= 10", s.functions),
		count(fmt.Sprintf("files over %d lines", longFile), "<= 10", s.files),
		count(fmt.Sprintf("files over %d lines", longestFile), "0", s.longest),
		bigPackages(t),
	}
}

// addLines notes the lines that are too wide.
func (s *shape) addLines(f *file, lines []string) {
	for i, line := range lines {
		width := utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
		if width > columns {
			s.wide = append(s.wide, fmt.Sprintf("%s:%d %d columns", f.path, i+1, width))
		}
	}
}

// addBodies notes the lines between the line with func and the closing brace.
func (s *shape) addBodies(t *tree, f *file, lines []string) {
	for _, decl := range f.syntax.Decls {
		decl, ok := decl.(*ast.FuncDecl)
		if !ok || decl.Body == nil {
			continue
		}

		from, to := t.line(decl.Pos()), t.line(decl.Body.Rbrace)
		if from == to {
			continue
		}

		body := lines[from : to-1]
		blank := 0

		for _, line := range body {
			if strings.TrimSpace(line) == "" {
				blank++
			}
		}

		s.bodyLines += len(body)
		s.blankLines += blank

		item := fmt.Sprintf("%s %s: %d lines", t.at(f, decl.Pos()), decl.Name.Name, len(body))
		if len(body) > wall && blank == 0 {
			s.walls = append(s.walls, item)
		}

		if len(body) > longFunction {
			s.functions = append(s.functions, item)
		}
	}
}

// addLength notes a file that is too long.
func (s *shape) addLength(f *file, lines int) {
	item := fmt.Sprintf("%s: %d lines", f.path, lines)
	if lines > longFile {
		s.files = append(s.files, item)
	}

	if lines > longestFile {
		s.longest = append(s.longest, item)
	}
}

// addLiterals notes the literals of fields over several lines, and those of them with two fields that begin
// on one line.
func (s *shape) addLiterals(t *tree, f *file) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok || t.line(lit.Lbrace) == t.line(lit.Rbrace) || isList(lit) {
			return true
		}

		s.literals++

		last := token.NoPos
		for _, e := range lit.Elts {
			if last.IsValid() && t.line(last) == t.line(e.Pos()) {
				s.crowded = append(s.crowded, t.at(f, e.Pos()))
				break
			}

			last = e.Pos()
		}

		return true
	})
}

// isList reports whether a literal holds elements of a slice or array, which may share lines, and not
// fields or entries.
func isList(lit *ast.CompositeLit) bool {
	if len(lit.Elts) == 0 {
		return true
	}

	if _, keyed := lit.Elts[0].(*ast.KeyValueExpr); keyed {
		return false
	}

	if _, array := lit.Type.(*ast.ArrayType); array {
		return true
	}

	// A named slice, as far as one can see without its declaration.
	return !slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
		switch e.(type) {
		case *ast.BasicLit, *ast.CompositeLit:
			return false
		}

		return true
	})
}

// reason is what the package comment of a package with many files has to contain.
const reason = "one package because"

// bigPackages names the packages with many files. Those whose comment gives a reason are not counted.
func bigPackages(t *tree) figure {
	files := map[string]int{}
	reasoned := map[string]bool{}

	for _, f := range t.files {
		if f.test {
			continue
		}

		files[f.dir()]++

		doc := strings.Join(strings.Fields(f.syntax.Doc.Text()), " ")
		if strings.Contains(strings.ToLower(doc), reason) {
			reasoned[f.dir()] = true
		}
	}

	var big, shown []string

	for dir, n := range files {
		if n <= manyFiles {
			continue
		}

		if dir == "." {
			dir = path.Base(t.module)
		}

		text := fmt.Sprintf("%s (%d)", dir, n)
		if reasoned[dir] {
			text += ", with a reason"
		} else {
			big = append(big, dir)
		}

		shown = append(shown, text)
	}

	slices.Sort(shown)

	value := fmt.Sprint(len(big))
	if len(shown) > 0 {
		value += ": " + strings.Join(shown, ", ")
	}

	return figure{
		name:  fmt.Sprintf("packages over %d files without a reason", manyFiles),
		value: value,
		goal:  "0",
	}
}
