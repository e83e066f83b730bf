package bench_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/testing/bench"
)

// turns is how often the sides of a comparison are measured; figures are the medians.
const turns = 5

// side is one of the things that are compared.
type side struct {
	name string
	// perSecond measures one turn: how often it was done in a second, by so many at once.
	perSecond func(b *testing.B, at int) float64
	// goal is the least ratio to the first side, which is the baseline; 0 where there is none.
	goal float64
	// note returns what is printed after the ratio; nil for nothing.
	note func() string
}

// compare measures the sides in turns, and reports the rate of each, its ratio to the first, and the goal of that.
func compare(b *testing.B, at int, sides []side) {
	b.Helper()

	rates := make([][]float64, len(sides))
	ratios := make([][]float64, len(sides))

	for b.Loop() {
		for range turns {
			var baseline float64

			for i, s := range sides {
				rate := s.perSecond(b, at)
				if i == 0 {
					baseline = rate
				}

				rates[i], ratios[i] = append(rates[i], rate), append(ratios[i], rate/baseline)
			}
		}
	}

	for i, s := range sides {
		line := fmt.Sprintf("%-34s c=%-3d %9.0f /s", s.name, at, bench.Median(rates[i]))
		if i > 0 {
			line += fmt.Sprintf("   %.3f", bench.Median(ratios[i]))
		}

		if s.goal > 0 {
			line += fmt.Sprintf("   goal %.2f", s.goal)
		}

		if s.note != nil {
			line += s.note()
		}

		fmt.Println(line)
	}

	b.ReportMetric(0, "ns/op") // the length of a turn is no result
}

// turn is how long one side is measured at once.
const turn = 2 * time.Second
