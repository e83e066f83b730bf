package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// Result is what a run came to.
type Result struct {
	Plan       Plan
	Violations []Violation
	Account    *Account
	// Trace is a hash of everything that was stored and mined; equal plans have equal traces.
	Trace uint64
}

// Run plays a plan up to its first violation, then lets everything come to rest. It must run in a bubble of
// testing/synctest, where what little of the library sleeps does so in no time. A nil log discards.
func Run(ctx context.Context, plan Plan, log *slog.Logger) Result {
	if log == nil {
		log = discard
	}

	w := newHarness(ctx, plan, log)
	w.account.Runs = 1

	for i, op := range plan.Ops {
		w.oracle.step = i + 1
		w.account.Steps++
		w.play(op)

		if len(w.oracle.violations) > 0 {
			return w.result()
		}
	}

	w.finish()

	return w.result()
}

func (w *harness) result() Result {
	for _, l := range w.oracle.ledgers {
		w.account.Counts["blocks"] += len(l.tree)
	}

	return Result{
		Plan:       w.plan,
		Violations: w.oracle.violations,
		Account:    w.account,
		Trace:      w.trace.Sum64(),
	}
}

// Shrink removes operations from a failing plan while play still reports the rule, and returns the shortest
// plan found. It plays at most tries plans.
func Shrink(plan Plan, rule string, tries int, play func(Plan) Result) Plan {
	fails := func(p Plan) (Result, bool) {
		tries--
		r := play(p)

		for _, v := range r.Violations {
			if v.Rule == rule {
				return r, true
			}
		}

		return r, false
	}

	for size := max(len(plan.Ops)/2, 1); size >= 1 && tries > 0; {
		removed := false

		for from := 0; from < len(plan.Ops) && tries > 0; {
			shorter := plan.without(from, min(from+size, len(plan.Ops)))
			if _, still := fails(shorter); still {
				plan, removed = shorter, true
			} else {
				from += size
			}
		}

		if !removed || size > 1 {
			if size == 1 {
				break
			}

			size /= 2
		}
	}

	return plan
}

// Listing returns a plan as the lines of a report.
func (p Plan) Listing() string {
	var b strings.Builder

	fmt.Fprintf(
		&b, "seed %d: %d processes, %d networks, finality %t, batch %d, %d operations\n",
		p.Seed, p.Processes, p.Networks, p.Finality, p.Batch, len(p.Ops),
	)

	for i, op := range p.Ops {
		fmt.Fprintf(&b, "%4d  %s\n", i+1, op)
	}

	return b.String()
}
