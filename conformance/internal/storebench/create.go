package storebench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/store"
)

const (
	turnCount  = 12
	turnLength = 500 * time.Millisecond
	insertBody = "some text of the length of a small record, which this is"
)

// Create compares the creation of invoices with insert, in turns.
func Create(b *testing.B, st store.Store, insert func(ctx context.Context, id, body string) error) {
	for _, goroutines := range []int{8, 32} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			compareCreate(b, goroutines, st, insert)
		})
	}
}

func compareCreate(
	b *testing.B,
	goroutines int,
	st store.Store,
	insert func(ctx context.Context, id, body string) error,
) {
	var ratios, creates, inserts []float64

	for b.Loop() {
		for range turnCount {
			insertRate := measureTurn(b, goroutines, func() error {
				return insert(b.Context(), recordID(int(created.Add(1))), insertBody)
			})
			createRate := measureTurn(b, goroutines, func() error { return createInvoice(b.Context(), st) })

			ratios = append(ratios, createRate/insertRate)
			creates = append(creates, createRate)
			inserts = append(inserts, insertRate)
		}
	}

	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(creates), "creates/s")
	b.ReportMetric(median(inserts), "inserts/s")
	b.ReportMetric(0, "ns/op") // the length of a turn is no result
}

// measureTurn calls f in many goroutines for one turn and returns the calls per second.
func measureTurn(b *testing.B, goroutines int, f func() error) float64 {
	var (
		done atomic.Int64
		wg   sync.WaitGroup
	)

	began := time.Now()

	for range goroutines {
		wg.Go(func() {
			for time.Since(began) < turnLength {
				if err := f(); err != nil {
					b.Error(err)
					return
				}

				done.Add(1)
			}
		})
	}

	wg.Wait()

	return float64(done.Load()) / time.Since(began).Seconds()
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
