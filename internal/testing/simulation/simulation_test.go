package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/internal/testing/raced"
)

// shortSeeds and shortSteps are the size of the short form.
const (
	shortSeeds = 20
	shortSteps = 300
)

// run plays a plan in a bubble of fake time.
func run(t *testing.T, plan Plan) (r Result) {
	t.Helper()

	log := discard
	if os.Getenv("SIMULATION_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}

	synctest.Test(t, func(*testing.T) {
		defer func() {
			if p := recover(); p != nil {
				r.Plan, r.Account = plan, newAccount()
				r.Account.Runs = 1
				r.Violations = []Violation{
					{Rule: "nothing panics", Text: fmt.Sprintf("%v\n%s", p, debug.Stack())},
				}
			}
		}()

		r = Run(context.Background(), plan, log)
	})

	return r
}

// number reads a whole number from the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()

	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}

	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}

	return n
}

// report fails the test for a run with violations: what was seen, the command that replays it, and the
// shortest plan that still shows it.
func report(t *testing.T, r Result, steps int) {
	t.Helper()

	if len(r.Violations) == 0 {
		return
	}

	first := r.Violations[0]
	short := Shrink(r.Plan, first.Rule, number(t, "SHRINK", 200), func(p Plan) Result { return run(t, p) })
	t.Errorf(
		"seed %d: %s\nreplay: make simulate BIAS=%s SEED=%d SEEDS=1 STEPS=%d\nshortest plan found:\n%s",
		r.Plan.Seed, first, os.Getenv("BIAS"), r.Plan.Seed, steps, short.Listing(),
	)
}

// play plays seeds from first on until more reports false, with a progress line every 10 s.
func play(t *testing.T, first, steps int, more func(seed int) bool) *Account {
	t.Helper()

	// A run keeps little and throws much away: the collector has little to find.
	defer debug.SetGCPercent(debug.SetGCPercent(800))

	total, began, said := newAccount(), time.Now(), time.Now()

	var found []string

	bias := os.Getenv("BIAS")
	if _, known := biases[bias]; !known {
		t.Fatalf("BIAS: %q is unknown", bias)
	}

	for seed := first; more(seed); seed++ {
		r := run(t, NewBiasedPlan(uint64(seed), steps, bias))
		total.Add(r.Account)

		if os.Getenv("COUNT") != "" {
			if len(r.Violations) > 0 {
				found = append(found, fmt.Sprintf("%d (%s)", seed, r.Violations[0].Rule))

				if os.Getenv("COUNT") == "first" {
					break
				}
			}

			continue
		}

		report(t, r, steps)

		if time.Since(said) > 10*time.Second {
			said = time.Now()

			fmt.Fprintf(os.Stderr, "seed %d: %s\n", seed, speed(total, began, 1))
		}

		if t.Failed() {
			break
		}
	}

	t.Logf("%s\n%s\n%s", speed(total, began, 1), total, total.Coverage())

	if len(found) > 0 {
		t.Logf("seeds that found something: %s", strings.Join(found, ", "))
		t.Errorf("found in %d of %d seeds, first in seed %s", len(found), total.Runs, found[0])
	}

	return total
}

// speed says how many steps were played, and how many of them a second, on all cores and on each.
func speed(total *Account, began time.Time, cores int) string {
	rate := float64(total.Steps) / time.Since(began).Seconds()

	return fmt.Sprintf(
		"%d steps, %.0f a second, %.0f on each of %d cores", total.Steps, rate, rate/float64(cores), cores,
	)
}

// The short form: the seeds from SEED on, SEEDS in number, with STEPS operations each. With COUNT set it says
// in how many of them something was found; with COUNT=first it ends at the first of them, as
// go run ./internal/testing/mutants -simulate does. BIAS names one of biases.
func TestSimulate(t *testing.T) {
	first, seeds := number(t, "SEED", 1), number(t, "SEEDS", raced.Fewer(shortSeeds))
	play(t, first, number(t, "STEPS", shortSteps), func(seed int) bool { return seed < first+seeds })
}

// soakSteps is the number of operations of one seed of the long form.
const soakSteps = 1000

// The long form: seeds until SOAKTIME is over, or where SOAKSTEPS is set until so many steps were played, on all cores.
// They are other seeds than those of the short form.
func TestSoakSimulation(t *testing.T) {
	text, target := os.Getenv("SOAKTIME"), number(t, "SOAKSTEPS", 0)
	if text == "" && target == 0 {
		t.Skip("TestSimulate plays a few seeds; set SOAKTIME or SOAKSTEPS to play others")
	}

	defer debug.SetGCPercent(debug.SetGCPercent(800))

	until := time.Now().Add(1000 * time.Hour)

	if target == 0 {
		limit, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}

		until = time.Now().Add(limit)
	}

	s := &soak{
		next:   number(t, "SEED", 1_000_000),
		target: target,
		until:  until,
		total:  newAccount(),
		began:  time.Now(),
	}

	t.Run("cores", func(t *testing.T) {
		for core := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(core), func(t *testing.T) {
				t.Parallel()

				for seed, more := s.seed(); more && !t.Failed(); seed, more = s.seed() {
					r := run(t, NewPlan(uint64(seed), soakSteps))
					report(t, r, soakSteps)
					s.add(r, seed)
				}
			})
		}
	})

	t.Logf(
		"%s; %d violations, seeds up to %d\n%s\n%s",
		speed(s.total, s.began, runtime.GOMAXPROCS(0)), s.violations, s.next-1, s.total, s.total.Coverage(),
	)
}

// soak is what the cores of the long form share.
type soak struct {
	mu          sync.Mutex
	next        int
	target      int
	until       time.Time
	total       *Account
	began, said time.Time
	violations  int
}

// seed returns the next seed; more is false once enough was played, or a violation was found.
func (s *soak) seed() (seed int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	enough := s.target > 0 && s.total.Steps >= s.target || time.Now().After(s.until) || s.violations > 0
	if !enough {
		s.next++
	}

	return s.next - 1, !enough
}

// add takes a run into the account, and prints a progress line every 10 s.
func (s *soak) add(r Result, seed int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.total.Add(r.Account)
	s.violations += len(r.Violations)

	if time.Since(s.said) > 10*time.Second {
		s.said = time.Now()
		fmt.Fprintf(
			os.Stderr, "seed %d: %s, %d violations\n",
			seed, speed(s.total, s.began, runtime.GOMAXPROCS(0)), s.violations,
		)
	}
}

func TestSeedReplaysExactly(t *testing.T) {
	for seed := range uint64(raced.Fewer(5)) {
		plan := NewPlan(seed, shortSteps)
		first, again := run(t, plan), run(t, plan)

		if first.Trace != again.Trace {
			t.Errorf("seed %d: two runs have the traces %x and %x", seed, first.Trace, again.Trace)
		}

		if other := run(t, NewPlan(seed+100, shortSteps)); other.Trace == first.Trace {
			t.Errorf("seeds %d and %d have one trace", seed, seed+100)
		}
	}
}

// A plan that breaks a rule by a few of its operations is shrunk to those.
func TestShrinkKeepsWhatIsNeeded(t *testing.T) {
	plan := NewPlan(1, 60)
	plan.Ops[20] = Op{Kind: CreateDeposit, A: 0, B: 0}
	plan.Ops[30] = Op{Kind: PayHidden, A: 7}
	plan.Ops[50] = Op{Kind: LagFar, C: 1}

	needed := func(p Plan) Result {
		var kinds []string

		for _, op := range p.Ops {
			kinds = append(kinds, string(op.Kind))
		}

		r := Result{Plan: p}
		if listed := strings.Join(kinds, ","); strings.Contains(listed, string(PayHidden)) &&
			strings.Contains(listed, string(LagFar)) {
			r.Violations = []Violation{{Rule: rulePublished}}
		}

		return r
	}

	short := Shrink(plan, rulePublished, 1000, needed)
	if len(short.Ops) != 2 || short.Ops[0].Kind != PayHidden || short.Ops[1].Kind != LagFar {
		t.Errorf("the plan was shrunk to\n%s", short.Listing())
	}
}

// Every kind is drawn, or held back by an open row, and every operation and fault is played.
func TestEveryKindIsPlayed(t *testing.T) {
	raced.Skip(t)

	for _, kind := range kindOrder {
		weight := weights[kind]
		for _, biased := range biases {
			weight += biased[kind]
		}

		if weight == 0 {
			t.Errorf("%q has no weight", kind)
		}
	}

	if len(weights) != len(kindOrder) {
		t.Errorf("%d kinds have weights, and %d are known", len(weights), len(kindOrder))
	}

	total := newAccount()
	for seed := range uint64(4) {
		total.Add(run(t, NewPlan(seed, 2*shortSteps)).Account)
	}

	for _, bias := range []string{"nonces", "coins", "receivers"} {
		total.Add(run(t, NewBiasedPlan(1, shortSteps, bias)).Account)
	}

	for _, kind := range kindOrder {
		if played := total.Operations[kind] > 0; played == held[kind] {
			t.Errorf("%q was played %d times; held back: %t", kind, total.Operations[kind], held[kind])
		}
	}
}
