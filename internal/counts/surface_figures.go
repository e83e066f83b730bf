package main

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// surfaceFigures counts the surface.
func surfaceFigures(t *tree) []figure {
	all := surface(t)
	items := map[kind][]string{}

	var internal, headline, promoted []string

	for _, e := range all {
		item := e.at + " " + e.text
		if e.promoted && e.kind <= value {
			promoted = append(promoted, item)
			continue
		}

		items[e.kind] = append(items[e.kind], item)
		if e.kind <= value {
			headline = append(headline, item)
		}

		if e.internal {
			internal = append(internal, item)
		}
	}

	unlisted := func(name string, kinds ...kind) figure {
		var n int
		for _, k := range kinds {
			n += len(items[k])
		}

		return figure{
			name:  name,
			value: fmt.Sprint(n),
		}
	}
	engine, fields, machinery := engineMembers(t, all)

	return []figure{
		{
			name:  "public functions, methods, types and values",
			value: fmt.Sprint(len(headline)),
			goal:  "<= 500",
		},
		unlisted("  public functions", function),
		unlisted("  public methods of concrete types", method),
		unlisted("  public types", typ),
		unlisted("  public constants and variables", value),
		count("public methods promoted from types without a public name", "", promoted),
		unlisted("public methods of interfaces", interfaceMethod),
		unlisted("public struct fields and embedded types", field, embedded),
		count("public methods of Engine", "<= 20", engine),
		count("public fields of Engine", "", fields),
		count("methods of Engine that return a store, sealer, log or clock", "0", machinery),
		count("public signatures with an internal type", "0", internal),
	}
}

// engineMembers returns the methods and fields of the root package's Engine, and the methods that hand out
// its parts.
func engineMembers(t *tree, all []entry) (methods, fields, machinery []string) {
	for _, e := range all {
		if e.pkg != path.Base(t.module) || e.owner != "Engine" {
			continue
		}

		item := e.at + " " + e.text
		if e.kind != method {
			fields = append(fields, item)
			continue
		}

		methods = append(methods, item)

		for _, result := range e.results {
			if isMachinery(e, result) {
				machinery = append(machinery, item)
				break
			}
		}
	}

	return methods, fields, machinery
}

// isMachinery reports whether a result is a store, a sealer, a log or a clock. A time is a clock's if the
// method takes nothing.
func isMachinery(e entry, result ast.Expr) bool {
	if f, ok := result.(*ast.FuncType); ok {
		return f.Results != nil && len(f.Results.List) == 1 && source(f.Results.List[0].Type) == "time.Time"
	}

	text := strings.TrimPrefix(e.renderer.typ(result), "*")

	from, name, qualified := strings.Cut(text, ".")
	if !qualified {
		name = from
	}

	switch {
	case text == "time.Time":
		return e.noParams
	case text == "slog.Value": // what is logged of a value, not a log
		return false
	case qualified && slices.Contains([]string{"store", "seal", "slog", "log", "sql"}, from):
		return true
	default:
		return slices.Contains([]string{"Store", "DB", "Sealer", "Box", "Logger", "Log", "Clock"}, name)
	}
}
