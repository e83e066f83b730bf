// Command counts measures a checkout: the size of the public surface, the shape of the code and the words
// it uses.
//
//	counts [-v] [DIR]    prints name, figure and goal of every measure, separated by tabs
//	counts -api [DIR]    prints the public surface, one line per identifier
//
// It reads the source alone and builds nothing, so that it can measure any commit.
package main

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	verbose := flag.Bool("v", false, "list what was counted under each figure")
	listing := flag.Bool("api", false, "print the public surface instead of the figures")

	flag.Parse()

	dir := "."
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}

	out := bufio.NewWriter(os.Stdout)
	if err := run(out, dir, *listing, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "counts:", err)
		os.Exit(1)
	}

	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "counts:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, dir string, listing, verbose bool) error {
	t, err := load(dir)
	if err != nil {
		return err
	}

	if listing {
		for _, line := range apiLines(t) {
			fmt.Fprintln(w, line)
		}

		return nil
	}

	figures := measure(t)
	for _, f := range figures {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.name, f.value, cmp.Or(f.goal, "-"))
	}

	if !verbose {
		return nil
	}

	printPackages(w, t)

	for _, f := range figures {
		if len(f.items) == 0 {
			continue
		}

		fmt.Fprintf(w, "\n# %s\n", f.name)

		for _, item := range f.items {
			fmt.Fprintln(w, item)
		}
	}

	return nil
}

// figure is one row of the table.
type figure struct {
	name  string
	value string
	goal  string   // empty where the row explains another one
	items []string // what was counted, for -v
}

// count returns the figure that is the number of items.
func count(name, goal string, items []string) figure {
	return figure{
		name:  name,
		value: fmt.Sprint(len(items)),
		goal:  goal,
		items: items,
	}
}

// percent formats part of whole.
func percent(part, whole int) string {
	if whole == 0 {
		return "0.0 %"
	}

	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// measure returns all figures in the order of the table.
func measure(t *tree) []figure {
	var all []figure

	all = append(all, surfaceFigures(t)...)
	all = append(all, count("casts between domain views", "0", viewCasts(t)))
	all = append(all, shapeFigures(t)...)
	all = append(all, wordFigures(t)...)

	return all
}

// printPackages prints the public surface of each package as a table.
func printPackages(w io.Writer, t *tree) {
	rows := map[string]map[kind]int{}
	for _, e := range surface(t) {
		if rows[e.pkg] == nil {
			rows[e.pkg] = map[kind]int{}
		}

		if e.promoted {
			continue
		}

		rows[e.pkg][e.kind]++
	}

	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}

	headline := func(name string) int {
		r := rows[name]
		return r[function] + r[method] + r[typ] + r[value]
	}

	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(headline(b), headline(a)), strings.Compare(a, b))
	})

	fmt.Fprintln(w, "\n# public surface by package")
	fmt.Fprintln(w, "package\tall\tfunctions\tmethods\ttypes\tvalues\tinterface methods\tfields")

	for _, name := range names {
		r := rows[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", name, headline(name),
			r[function], r[method], r[typ], r[value], r[interfaceMethod], r[field]+r[embedded])
	}
}
