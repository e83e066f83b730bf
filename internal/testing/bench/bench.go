// Package bench measures rates in turns, for benchmarks that compare one thing with another in the same minute. Its own
// benchmarks measure what the service costs where its users meet it: over HTTP and over PostgreSQL that waits for the
// disk. Each runs beside a baseline, and prints the ratio with its goal:
//
//	go test ./internal/testing/bench -run '^$' -bench . -benchtime 1x
package bench

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// PerSecond calls f in so many goroutines for one turn, and returns the calls per second.
func PerSecond(b *testing.B, goroutines int, turn time.Duration, f func() error) float64 {
	b.Helper()

	var (
		done    atomic.Int64
		working sync.WaitGroup
	)

	began := time.Now()

	for range goroutines {
		working.Go(func() {
			for time.Since(began) < turn {
				if err := f(); err != nil {
					b.Error(err)
					return
				}

				done.Add(1)
			}
		})
	}

	working.Wait()

	return float64(done.Load()) / time.Since(began).Seconds()
}

// Median returns the middle of the turns' figures, of which there is at least one.
func Median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))

	return sorted[len(sorted)/2]
}
