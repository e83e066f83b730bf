package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// hit is one use of a forbidden word.
type hit struct {
	word    string
	instead string
	at      string
	comment bool
}

// wordFigures counts the uses of forbidden words, tests included.
func wordFigures(t *tree) []figure {
	var inNames, inComments int

	byWord := map[string]int{}
	instead := map[string]string{}

	hits := findWords(t)
	for _, h := range hits {
		byWord[h.word]++

		instead[h.word] = h.instead
		if h.comment {
			inComments++
		} else {
			inNames++
		}
	}

	words := make([]string, 0, len(byWord))
	for word := range byWord {
		words = append(words, word)
	}

	slices.SortFunc(words, func(a, b string) int {
		return cmp.Or(cmp.Compare(byWord[b], byWord[a]), strings.Compare(a, b))
	})

	items := make([]string, 0, len(words)+len(hits))
	for _, word := range words {
		items = append(items, fmt.Sprintf("%s\t%d\t%s", word, byWord[word], instead[word]))
	}

	for _, h := range hits {
		items = append(items, h.at+" "+h.word)
	}

	return []figure{
		{
			name:  "forbidden words",
			value: fmt.Sprint(len(hits)),
			goal:  "0",
			items: items,
		},
		{
			name:  "  forbidden words in identifiers and file names",
			value: fmt.Sprint(inNames),
		},
		{
			name:  "  forbidden words in comments",
			value: fmt.Sprint(inComments),
		},
	}
}

// findWords returns the uses of forbidden words in the order of the files.
func findWords(t *tree) []hit {
	rules := map[scope]map[string]string{}
	for _, group := range glossary {
		if rules[group.scope] == nil {
			rules[group.scope] = map[string]string{}
		}

		for _, word := range group.words {
			rules[group.scope][word] = group.instead
		}
	}

	var out []hit

	for _, f := range t.files {
		s := search{
			tree:  t,
			file:  f,
			rules: rules,
		}
		s.fileName()
		s.declarations()
		s.comments()
		out = append(out, s.hits...)
	}

	return out
}

// search looks through one file.
type search struct {
	tree  *tree
	file  *file
	rules map[scope]map[string]string
	hits  []hit
}

// look notes the word if a rule of the scope has it.
func (s *search) look(in scope, word string, pos token.Pos, comment bool) {
	instead, ok := s.rules[in][word]
	if !ok {
		return
	}

	s.hits = append(s.hits, hit{
		word:    word,
		instead: instead,
		at:      s.tree.at(s.file, pos),
		comment: comment,
	})
}

func (s *search) fileName() {
	s.look(fileNames, path.Base(s.file.path), s.file.syntax.Package, false)

	base := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.file.path), ".go"), "_test")
	for _, word := range splitWords(base) {
		s.look(anywhere, word, s.file.syntax.Package, false)
	}
}

// declarations looks at every identifier that the file declares, local ones and parameters included.
func (s *search) declarations() {
	s.identifier(s.file.syntax.Name)

	for _, decl := range s.file.syntax.Decls {
		s.exported(decl)
	}

	ast.Inspect(s.file.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			s.identifier(n.Name)
			s.look(functions, n.Name.Name, n.Name.Pos(), false)
		case *ast.TypeSpec:
			s.identifier(n.Name)
		case *ast.ValueSpec:
			s.identifiers(n.Names)
		case *ast.Field:
			s.identifiers(n.Names)
		case *ast.ImportSpec:
			s.identifier(n.Name)
		case *ast.LabeledStmt:
			s.identifier(n.Label)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				s.expressions(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				s.expressions(n.Key, n.Value)
			}
		}

		return true
	})
}

// exported looks at package.Name of a top-level declaration.
func (s *search) exported(decl ast.Decl) {
	name := func(id *ast.Ident) {
		s.look(qualified, s.file.syntax.Name.Name+"."+id.Name, id.Pos(), false)
	}

	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			name(decl.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				name(spec.Name)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					name(id)
				}
			}
		}
	}
}

func (s *search) expressions(all ...ast.Expr) {
	for _, e := range all {
		if id, ok := e.(*ast.Ident); ok {
			s.identifier(id)
		}
	}
}

func (s *search) identifiers(all []*ast.Ident) {
	for _, id := range all {
		s.identifier(id)
	}
}

func (s *search) identifier(id *ast.Ident) {
	if id == nil {
		return
	}

	s.look(names, id.Name, id.Pos(), false)

	for _, word := range splitWords(id.Name) {
		s.look(anywhere, word, id.Pos(), false)
		s.look(identifiers, word, id.Pos(), false)
	}
}

func (s *search) comments() {
	for _, group := range s.file.syntax.Comments {
		for _, c := range group.List {
			for _, word := range splitWords(c.Text) {
				s.look(anywhere, word, c.Pos(), true)
			}
		}
	}
}

// splitWords returns the words of a text in lower case. Words joined as in camelCase or HTTPServer are
// taken apart.
func splitWords(text string) []string {
	var out []string

	start := -1
	end := func(i int) {
		if start >= 0 {
			out = append(out, strings.ToLower(text[start:i]))
		}

		start = -1
	}

	for i := range len(text) {
		c := text[i]
		switch {
		case !isUpper(c) && !isLower(c):
			end(i)
			continue
		case isUpper(c) && i > 0 && isLower(text[i-1]):
			end(i)
		case isUpper(c) && i+1 < len(text) && isLower(text[i+1]):
			end(i)
		}

		if start < 0 {
			start = i
		}
	}

	end(len(text))

	return out
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
