package simulation

import (
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/internal/testing/raced"
)

// What no fork touched, the records show as the facts of their place come to. Neither do sums differ, nor what lies at
// the places, whatever happened. SHADOW=1 make simulate plays more, and prints each kind of difference once.
func TestRecordsAreWhatTheirFactsComeTo(t *testing.T) {
	raced.Skip(t)

	defer func(before bool) { shadowing = before }(shadowing)

	shadowing = true

	for _, c := range []struct {
		bias  string
		seeds uint64
	}{{"", 4}, {"outputs", 1}, {"anew", 1}} {
		total := newAccount()
		for seed := range c.seeds {
			total.Add(run(t, NewBiasedPlan(seed+1, shortSteps, c.bias)).Account)
		}

		if total.Counts["shadow: places compared"] == 0 {
			t.Errorf("BIAS=%s: nothing was compared", c.bias)
		}

		for key, times := range total.Counts {
			difference, differs := strings.CutPrefix(key, "shadow differs: ")
			if differs &&
				(strings.HasPrefix(difference, "sum of") || strings.Contains(difference, "at rest") ||
					strings.Contains(difference, unexplained)) {
				t.Errorf("BIAS=%s: %s, %d times", c.bias, difference, times)
			}
		}
	}
}
