// Command mutants plants faults in the rules of money, one at a time, and sees a test fail for each.
//
// mutants.json lists them: the rule that a mutant breaks, the snippet of code that it replaces, and the test
// that must notice. The code itself is never touched: the go command reads a mutated copy of one file through
// an overlay. A snippet is matched token by token, so that white space, comments and the breaking of lines do
// not matter; when code is moved or renamed, only the entry's file, package or identifiers have to follow,
// and the test of this package says so at once.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := run(ctx)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}

	if !ok {
		os.Exit(1)
	}
}

// run does what the flags ask for, and reports whether all is as it should be.
func run(ctx context.Context) (ok bool, err error) {
	list := flag.Bool("list", false, "list the mutants and plant none")
	check := flag.Bool("check", false, "only see that every snippet is where the list says")
	only := flag.String("run", "", "plant only the mutants whose id matches this regular expression")
	simulate := flag.Int(
		"simulate",
		0,
		"play up to so many seeds of internal/testing/simulation in place of the mutants' tests",
	)
	jobs := flag.Int("jobs", 2, "with -simulate: how many mutants are played at a time")
	limit := flag.Duration(
		"timeout", 3*time.Minute, "how long one run of a test may take, compiling included",
	)

	flag.Parse()

	wanted, err := regexp.Compile(*only)
	if err != nil {
		return false, err
	}

	root, err := moduleRoot()
	if err != nil {
		return false, err
	}

	mutants, err := load()
	if err != nil {
		return false, err
	}

	var chosen []mutant

	for _, m := range mutants {
		if wanted.MatchString(m.ID) && (*simulate == 0 || *only != "" || m.Simulated) {
			chosen = append(chosen, m)
		}
	}

	switch {
	case *list:
		for _, m := range chosen {
			fmt.Printf("%s\n\t%s\n\t%s, %s; %s of %s\n", m.ID, m.Rule, m.File, m.Func, m.Test, m.Package)
		}

		return true, nil
	case *check:
		return checkAll(root, chosen), nil
	case *simulate > 0:
		return simulateAll(ctx, root, chosen, *simulate, *jobs)
	}

	return plantAll(ctx, root, chosen, *limit)
}

// checkAll says which mutants cannot be planted, and reports whether there are none.
func checkAll(root string, mutants []mutant) bool {
	bad := 0

	for _, m := range mutants {
		if err := m.check(root); err != nil {
			bad++

			fmt.Printf("ERROR     %s: %v\n", m.ID, err)
		}
	}

	fmt.Printf("%d mutants: %d can be planted, %d errors\n", len(mutants), len(mutants)-bad, bad)

	return bad == 0
}
