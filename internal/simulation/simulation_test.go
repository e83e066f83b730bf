package simulation

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// run plays a plan in a bubble of fake time.
func run(t *testing.T, plan Plan) (r Result) {
	t.Helper()

	log := slog.New(slog.DiscardHandler)
	if os.Getenv("SIMULATION_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}

	synctest.Test(t, func(*testing.T) { r = Run(context.Background(), plan, log) })

	return r
}

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

func TestSeeds(t *testing.T) {
	total, began := newAccount(), time.Now()
	first, seeds, steps := number(t, "SEED", 1), number(t, "SEEDS", 20), number(t, "STEPS", 300)

	for seed := first; seed < first+seeds; seed++ {
		r := run(t, NewPlan(uint64(seed), steps))
		total.Add(r.Account)

		for _, v := range r.Violations {
			t.Errorf("seed %d: %s", seed, v)
		}
	}

	t.Logf("%s\n%s", time.Since(began), total)
}
