package storebench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/testing/bench"
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
			insertRate := bench.PerSecond(b, goroutines, turnLength, func() error {
				return insert(b.Context(), recordID(int(created.Add(1))), insertBody)
			})
			createRate := bench.PerSecond(
				b,
				goroutines,
				turnLength,
				func() error { return createInvoice(b.Context(), st) },
			)

			ratios = append(ratios, createRate/insertRate)
			creates = append(creates, createRate)
			inserts = append(inserts, insertRate)
		}
	}

	b.ReportMetric(bench.Median(ratios), "ratio")
	b.ReportMetric(bench.Median(creates), "creates/s")
	b.ReportMetric(bench.Median(inserts), "inserts/s")
	b.ReportMetric(0, "ns/op") // the length of a turn is no result
}
