package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// least is how many mutants the list holds at least.
const least = 40

// TestEveryMutantCanBePlanted fails when code was moved or changed and the list did not follow.
func TestEveryMutantCanBePlanted(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}

	mutants, err := load()
	if err != nil {
		t.Fatal(err)
	}

	if len(mutants) < least {
		t.Errorf("the list holds %d mutants, fewer than %d", len(mutants), least)
	}

	id := regexp.MustCompile(`^M\d{2,3}-[a-z0-9]+(-[a-z0-9]+)*$`)

	known := map[string]bool{}

	for _, m := range mutants {
		number, _, _ := strings.Cut(m.ID, "-")
		if !id.MatchString(m.ID) || known[number] {
			t.Errorf("the id %q is malformed or taken", m.ID)
			continue
		}

		known[number] = true

		if m.Rule == "" {
			t.Errorf("%s does not say what rule it breaks", m.ID)
		}

		if err := m.check(root); err != nil {
			t.Errorf("%s cannot be planted: %v", m.ID, err)
		}
	}
}

// TestSnippetsMatchWhateverTheFormat holds replace to what formatting may change.
func TestSnippetsMatchWhateverTheFormat(t *testing.T) {
	const src = `package p

func f(a, b int) int {
	if a == 0 || // nothing
		b == 0 {
		return 0
	}
	return g(
		a, /* first */
		b,
	)
}
`

	for _, c := range []struct{ name, old, new, want string }{
		{"broken lines and comments", "a==0||b==0", "a == 0", "if a == 0 {"},
		{"trailing comma", "return g(a, b)", "return a", "}\n\treturn a\n}"},
		{"trailing comma of the snippet", "g(\na,\nb,\n)", "b", "return b\n"},
		{"several statements", "return 0\n}\nreturn g", "return 1\n}\nreturn h", "return 1\n}\nreturn h("},
		{"nothing instead", "|| b == 0", "", "if a == 0  {"},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to, err := declaration([]byte(src), "f")
			if err != nil {
				t.Fatal(err)
			}

			got, err := replace([]byte(src), from, to, c.old, c.new)
			if err != nil {
				t.Fatal(err)
			}

			if !strings.Contains(string(got), c.want) {
				t.Errorf("got\n%s\nwithout %q", got, c.want)
			}
		})
	}
}

// TestSnippetsMatchOnce refuses what is found nowhere, more than once, in part of a token, or outside of the
// function.
func TestSnippetsMatchOnce(t *testing.T) {
	const src = "package p\n\nvar v = 3\n\nfunc f() int { x := 1; xy := x + 2; return x + xy }\n"
	for _, c := range []struct{ old, why string }{
		{"z", "found 0 times"},
		{"+", "found 2 times"},
		{"y", "found 0 times"},
		{"3", "found 0 times"},
		{"", "no token"},
		{"// x", "no token"},
		{"\"x", "not terminated"},
	} {
		from, to, err := declaration([]byte(src), "f")
		if err != nil {
			t.Fatal(err)
		}

		_, err = replace([]byte(src), from, to, c.old, "0")
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q: got %v, want %q", c.old, err, c.why)
		}
	}
}

// TestDeclarationsAreFoundByName holds declaration to receivers, variables and what is declared twice.
func TestDeclarationsAreFoundByName(t *testing.T) {
	const src = `package p

var table = []int{1}

func f() { _ = 1 }

func (t T) f() { _ = 2 }

func (t *P[K]) f() { _ = 3 }

func init() { _ = 4 }

func init() { _ = 5 }
`
	for name, want := range map[string]string{
		"table": "table = []int{1}",
		"f":     "{ _ = 1 }",
		"T.f":   "{ _ = 2 }",
		"P.f":   "{ _ = 3 }",
		"init":  "",
		"g":     "",
	} {
		from, to, err := declaration([]byte(src), name)
		if (err == nil) != (want != "") {
			t.Errorf("%s: got the error %v", name, err)
			continue
		}

		if err == nil && src[from:to] != want {
			t.Errorf("%s: got %q, want %q", name, src[from:to], want)
		}
	}
}

// TestPackagesAreTestedInTheirModule finds the module of a nested package.
func TestPackagesAreTestedInTheirModule(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct{ pkg, dir, local string }{
		{".", root, "./."},
		{"./internal/txmgr", root, "./internal/txmgr"},
		{"./tools", filepath.Join(root, "tools"), "./."},
	} {
		dir, local := moduleOf(root, c.pkg)
		if dir != c.dir || local != c.local {
			t.Errorf("%s: got %s in %s, want %s in %s", c.pkg, local, dir, c.local, c.dir)
		}
	}
}
