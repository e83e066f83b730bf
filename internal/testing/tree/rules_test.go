package tree_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Every rule of the specification has one home, which carries its tag.
func TestRulesHaveOneHome(t *testing.T) {
	rules, problems := checkRules(os.DirFS("."))
	if rules < 200 {
		t.Errorf("docs/proof/rules.md has %d rules", rules)
	}

	for _, problem := range problems {
		t.Error(problem)
	}
}

// The check finds each way in which a rule and its home can part.
func TestRulesCheckFinds(t *testing.T) {
	const (
		header = "| id | rule | home |\n|---|---|---|\n"
		row    = "| 2.8.1 | the fee | `fee.go` `Fee` |\n"
		home   = "package p\n\n// Fee is the fee.\nfunc Fee() {} // spec 2.8.1\n"
	)

	for _, test := range []struct {
		name, page, code string
		want             []string
	}{
		{"home and tag", row, home, nil},
		{"tag in the doc comment", row, "package p\n\n// Fee is the fee.\n// spec 2.8.1\nfunc Fee() {}\n", nil},
		{"tag in the body", row, "package p\n\nfunc Fee() {\n\treturn // spec 2.8.1\n}\n", nil},
		{
			"method of a generic type",
			"| 2.8.1 | the fee | `fee.go` `Fee.Of` |\n",
			"package p\n\ntype Fee[T any] struct{}\n\nfunc (*Fee[T]) Of() {} // spec 2.8.1\n",
			nil,
		},
		{
			"constant of a group",
			row,
			"package p\n\nconst (\n\tOther = 1\n\tFee   = 2 // spec 2.8.1\n)\n",
			nil,
		},
		{
			"several ids",
			row + "| D4.1 | the rest | `fee.go` `Fee` |\n",
			strings.Replace(home, "2.8.1", "2.8.1, D4.1", 1),
			nil,
		},
		{"not built", "## Not built\n\n| D4.1 | the rest | all |\n", "package p\n", nil},
		{
			"rule without a home",
			"| 2.8.1 | the fee | |\n",
			"package p\n",
			[]string{"rule 2.8.1 has no home"},
		},
		{
			"home in no file",
			strings.Replace(row, "fee.go", "gone.go", 1),
			"package p\n",
			[]string{"rule 2.8.1: there is no gone.go"},
		},
		{
			"home that is not declared",
			row,
			"package p\n\nfunc fee() {} // spec 2.8.1\n",
			[]string{"rule 2.8.1: fee.go does not declare Fee"},
		},
		{
			"home without the tag",
			row,
			"package p\n\nfunc Fee() {}\n",
			[]string{"rule 2.8.1: Fee of fee.go has no tag // spec 2.8.1"},
		},
		{
			"tag of a neighbour",
			row,
			"package p\n\nconst (\n\tOther = 1 // spec 2.8.1\n\tFee   = 2\n)\n",
			[]string{"rule 2.8.1: Fee of fee.go has no tag // spec 2.8.1"},
		},
		{
			"tag of an unknown rule",
			row,
			home + "\nvar other int // spec 2.8.9\n",
			[]string{"fee.go:6: docs/proof/rules.md has no rule 2.8.9"},
		},
		{
			"two tags",
			row,
			home + "\nvar other int // spec 2.8.1\n",
			[]string{"rule 2.8.1 is tagged in fee.go:4 and fee.go:6"},
		},
		{
			"two rows",
			row + row,
			home,
			[]string{"docs/proof/rules.md has rule 2.8.1 twice"},
		},
		{
			"tag that is none",
			row,
			home + "\nvar other int // spec 2.8.1: the fee\n",
			[]string{"fee.go:6: not a tag: // spec 2.8.1: the fee"},
		},
		{
			"tag of what is not built",
			"## Not built\n\n| 2.8.1 | the fee | all |\n",
			home,
			[]string{"rule 2.8.1 is not built and tagged in fee.go:4"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, problems := checkRules(fstest.MapFS{
				"docs/proof/rules.md": {Data: []byte(header + test.page)},
				"fee.go":              {Data: []byte(test.code)},
			})
			if !slices.Equal(problems, test.want) {
				t.Errorf("found %q, want %q", problems, test.want)
			}
		})
	}
}

// A rule is a row of docs/proof/rules.md. File and symbol are empty without a home.
type rule struct {
	id, file, symbol string
	notBuilt         bool
}

var (
	ruleRow  = regexp.MustCompile(`^\| (D?[0-9]+(?:\.[0-9]+)+) \| .+ \| ?(.*?) ?\|$`)
	ruleHome = regexp.MustCompile("^`([^`]+\\.go)` `([^`]+)`$")
	ruleTag  = regexp.MustCompile(`^// spec (D?[0-9.]+(?:, D?[0-9.]+)*)$`)
)

// checkRules compares docs/proof/rules.md with the tags of a tree. It returns the number of rules with a home, and
// what is wrong.
func checkRules(tree fs.FS) (homes int, problems []string) {
	page, err := fs.ReadFile(tree, "docs/proof/rules.md")
	if err != nil {
		return 0, []string{err.Error()}
	}

	rules, problems := readRules(string(page))

	source, err := readSource(tree)
	if err != nil {
		return 0, append(problems, err.Error())
	}

	problems = append(problems, source.malformed...)

	known := map[string]bool{}
	for _, r := range rules {
		known[r.id] = true

		if problem := source.check(r); problem != "" {
			problems = append(problems, problem)
		} else if !r.notBuilt {
			homes++
		}
	}

	for _, id := range slices.Sorted(maps.Keys(source.tags)) {
		places := source.tags[id]
		if !known[id] {
			problems = append(problems, fmt.Sprintf("%s: docs/proof/rules.md has no rule %s", places[0], id))
		}

		if len(places) > 1 {
			problems = append(
				problems,
				fmt.Sprintf("rule %s is tagged in %s and %s", id, places[0], places[1]),
			)
		}
	}

	return homes, problems
}

// readRules parses the rows of docs/proof/rules.md. Those below the heading "Not built" need no home.
func readRules(page string) (rules []rule, problems []string) {
	seen, notBuilt := map[string]bool{}, false

	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			notBuilt = heading == "Not built"
		}

		row := ruleRow.FindStringSubmatch(line)
		if row == nil {
			continue
		}

		if seen[row[1]] {
			problems = append(problems, fmt.Sprintf("docs/proof/rules.md has rule %s twice", row[1]))
			continue
		}

		seen[row[1]] = true
		next := rule{id: row[1], notBuilt: notBuilt}

		if home := ruleHome.FindStringSubmatch(row[2]); home != nil {
			next.file, next.symbol = home[1], home[2]
		}

		rules = append(rules, next)
	}

	return rules, problems
}

// A place is a line of a file.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// A span is the lines of a declaration, its doc comment included; those of a group's own doc comment and
// first line as well.
type span struct{ first, last, groupFirst, groupLast int }

func (s span) holds(line int) bool {
	return line >= s.first && line <= s.last || line >= s.groupFirst && line <= s.groupLast
}

// source is what the Go files of a tree declare and tag.
type source struct {
	files     map[string]map[string]span // file, symbol
	tags      map[string][]place         // id
	malformed []string
}

// check returns what is wrong with the home of a rule, or "".
func (s source) check(r rule) string {
	tags := s.tags[r.id]

	switch {
	case r.notBuilt && len(tags) > 0:
		return fmt.Sprintf("rule %s is not built and tagged in %s", r.id, tags[0])
	case r.notBuilt:
		return ""
	case r.file == "":
		return fmt.Sprintf("rule %s has no home", r.id)
	case s.files[r.file] == nil:
		return fmt.Sprintf("rule %s: there is no %s", r.id, r.file)
	}

	lines, ok := s.files[r.file][r.symbol]
	if !ok {
		return fmt.Sprintf("rule %s: %s does not declare %s", r.id, r.file, r.symbol)
	}

	for _, at := range tags {
		if at.file == r.file && lines.holds(at.line) {
			return ""
		}
	}

	return fmt.Sprintf("rule %s: %s of %s has no tag // spec %s", r.id, r.symbol, r.file, r.id)
}

// readSource parses every Go file of a tree, but those of directories whose names begin with a dot, of
// testdata and of other languages' dependencies.
func readSource(tree fs.FS) (source, error) {
	out := source{files: map[string]map[string]span{}, tags: map[string][]place{}}

	return out, fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if skip := strings.HasPrefix(entry.Name(), ".") && path != "."; skip ||
				slices.Contains([]string{"testdata", "node_modules"}, entry.Name()) {
				return fs.SkipDir
			}

			return nil
		case !strings.HasSuffix(path, ".go"):
			return nil
		}

		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}

		return out.add(path, text)
	})
}

// add parses one file.
func (s *source) add(path string, text []byte) error {
	positions := token.NewFileSet()

	file, err := parser.ParseFile(positions, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}

	s.files[path] = declarations(positions, file)

	for _, group := range file.Comments {
		for _, comment := range group.List {
			at := place{path, positions.Position(comment.Pos()).Line}

			tag := ruleTag.FindStringSubmatch(comment.Text)
			if tag == nil {
				if regexp.MustCompile(`^// spec D?[0-9]`).MatchString(comment.Text) {
					s.malformed = append(s.malformed, fmt.Sprintf("%s: not a tag: %s", at, comment.Text))
				}

				continue
			}

			for id := range strings.SplitSeq(tag[1], ", ") {
				s.tags[id] = append(s.tags[id], at)
			}
		}
	}

	return nil
}

// declarations returns the lines of a file's declarations, by name; methods as Type.Method.
func declarations(positions *token.FileSet, file *ast.File) map[string]span {
	line := func(p token.Pos) int { return positions.Position(p).Line }
	out := map[string]span{}

	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			out[funcName(d)] = span{first: line(start(d.Doc, d.Pos())), last: line(d.End())}
		case *ast.GenDecl:
			first := line(start(d.Doc, d.Pos()))

			for _, s := range d.Specs {
				lines := span{first: first, last: line(d.End())}
				names, doc := specNames(s)

				if d.Lparen.IsValid() {
					lines = span{line(start(doc, s.Pos())), line(s.End()), first, line(d.Lparen)}
				}

				for _, name := range names {
					out[name] = lines
				}
			}
		}
	}

	return out
}

// start returns where a declaration begins with its doc comment.
func start(doc *ast.CommentGroup, at token.Pos) token.Pos {
	if doc != nil {
		return doc.Pos()
	}

	return at
}

// funcName returns the name of a function, or Type.Method of a method.
func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}

	receiver := d.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// specNames returns the names that one entry of a declaration declares, and its doc comment.
func specNames(s ast.Spec) ([]string, *ast.CommentGroup) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return []string{s.Name.Name}, s.Doc
	case *ast.ValueSpec:
		var names []string
		for _, name := range s.Names {
			names = append(names, name.Name)
		}

		return names, s.Doc
	}

	return nil, nil
}
