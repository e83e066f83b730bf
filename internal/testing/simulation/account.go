package simulation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/crashtest"
)

// Account counts what happened in runs.
type Account struct {
	// Runs, Steps and calls of nodes.
	Runs, Steps int
	calls       int
	// Operations by kind, Faults by kind.
	Operations map[Kind]int
	Counts     map[string]int
	// States are the statuses that objects had, Cells the pairs of fault and operation.
	States map[string]int
	Cells  map[Cell]int
}

// Cell is a fault that was present while an operation ran.
type Cell struct {
	Fault     Kind
	Operation Kind
}

func newAccount() *Account {
	return &Account{
		Operations: map[Kind]int{},
		Counts:     map[string]int{},
		States:     map[string]int{},
		Cells:      map[Cell]int{},
	}
}

func (a *Account) count(what string) { a.Counts[what]++ }

// failed counts an engine's error by its kind.
func (a *Account) failed(err error) {
	if err == nil {
		return
	}

	switch {
	case errors.Is(err, crashtest.ErrKilled):
		a.count("process killed")
	case errors.Is(err, fault.Stopped):
		a.count("step of a stopped network")
	case errors.Is(err, fault.Unavailable):
		a.count("step without an answer")
	default:
		a.count("step that failed otherwise")
	}
}

// Add adds another account.
func (a *Account) Add(other *Account) {
	a.Runs += other.Runs
	a.Steps += other.Steps
	a.calls += other.calls

	add(a.Operations, other.Operations)
	add(a.Counts, other.Counts)
	add(a.States, other.States)
	add(a.Cells, other.Cells)
}

func add[K comparable](to, from map[K]int) {
	for key, n := range from {
		to[key] += n
	}
}

// Coverage returns the pairs of fault and operation as a table: for each fault, how many operations it was
// present at, and which it never was.
func (a *Account) Coverage() string {
	var b strings.Builder

	fmt.Fprintln(&b, "| fault | operations | not with |")
	fmt.Fprintln(&b, "|---|---|---|")

	reached, cells := 0, 0

	for _, fault := range Faults() {
		if fault == Heal {
			continue
		}

		if weights[fault] == 0 && a.Operations[fault] == 0 {
			fmt.Fprintf(&b, "| %s | – | drawn by a bias alone |\n", fault)
			continue
		}

		if held[fault] {
			fmt.Fprintf(&b, "| %s | – | held back by an open row |\n", fault)
			continue
		}

		var never []string

		for _, operation := range Operations() {
			cells++

			if a.Cells[Cell{fault, operation}] == 0 {
				never = append(never, string(operation))
			} else {
				reached++
			}
		}

		with := len(Operations()) - len(never)
		fmt.Fprintf(&b, "| %s | %d of %d | %s |\n", fault, with, len(Operations()), strings.Join(never, ", "))
	}

	fmt.Fprintf(&b, "\n%d of %d cells that are not held back were reached.\n", reached, cells)

	return b.String()
}

// String lists the counts.
func (a *Account) String() string {
	var b strings.Builder

	fmt.Fprintf(&b, "%d runs, %d steps, %d calls of nodes\n", a.Runs, a.Steps, a.calls)
	fmt.Fprintln(&b, "operations:")

	for _, kind := range slices.Sorted(maps.Keys(a.Operations)) {
		fmt.Fprintf(&b, "  %-24s %d\n", kind, a.Operations[kind])
	}

	for name, counts := range map[string]map[string]int{"counts": a.Counts} {
		fmt.Fprintf(&b, "%s:\n", name)

		for _, key := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(&b, "  %-40s %d\n", key, counts[key])
		}
	}

	fmt.Fprintln(&b, "states:")

	for _, key := range slices.Sorted(maps.Keys(a.States)) {
		fmt.Fprintf(&b, "  %-40s %d\n", key, a.States[key])
	}

	return b.String()
}
