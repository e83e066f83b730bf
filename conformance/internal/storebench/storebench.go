// Package storebench measures the hot paths of a store, for conformance.BenchmarkStore and
// conformance.BenchmarkCreate.
package storebench

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// filled is how many invoices the benchmarks of reads have in their store.
const filled = 5000

// Run measures stores that factory makes.
func Run(b *testing.B, factory func(b *testing.B) store.Store) {
	b.Run("Create", func(b *testing.B) { benchmarkCreate(b, factory(b)) })
	b.Run("Read", func(b *testing.B) { benchmarkRead(b, factory(b)) })
	b.Run("Page", func(b *testing.B) { benchmarkPage(b, factory(b)) })
	b.Run("Match", func(b *testing.B) { benchmarkMatch(b, factory(b)) })
}

func benchmarkCreate(b *testing.B, st store.Store) {
	b.SetParallelism(8)
	b.ReportAllocs()
	b.ResetTimer()

	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := createInvoice(b.Context(), st); err != nil {
				b.Error(err)
				return
			}
		}
	})

	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
}

func benchmarkRead(b *testing.B, st store.Store) {
	ids := fill(b, st)

	b.ReportAllocs()

	for i := 0; b.Loop(); i++ {
		if _, err := st.Invoice(b.Context(), owner, ids[i*7919%filled]); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkPage(b *testing.B, st store.Store) {
	ids := fill(b, st)

	b.ReportAllocs()

	for i := 0; b.Loop(); i++ {
		filter := invoice.Filter{Owner: owner, After: ids[100+i*7919%(filled-100)], Limit: 50}

		page, err := st.Invoices(b.Context(), filter)
		if err != nil || len(page) != 50 {
			b.Fatal(len(page), err)
		}
	}
}

func benchmarkMatch(b *testing.B, st store.Store) {
	fill(b, st)

	batch := make([]chain.Address, 1000)
	for i := range batch { // one in 100 is ours
		batch[i] = newInvoice(i*50 + filled - 500).Options[0].Address
	}

	b.ReportAllocs()

	for b.Loop() {
		found, err := st.MatchAddresses(b.Context(), chain.Space{Family: chain.EVM}, batch)
		if err != nil || len(found) != 10 {
			b.Fatal(len(found), err)
		}
	}
}

// fill stores invoices with their addresses, 500 in a transaction, and returns their ids.
func fill(b *testing.B, st store.Store) []string {
	b.Helper()

	var ids []string

	for from := 0; from < filled; from += 500 {
		err := st.Update(b.Context(), func(ctx context.Context, tx store.Tx) error {
			ids = ids[:from]

			for i := from; i < min(from+500, filled); i++ {
				inv := newInvoice(i)
				ids = append(ids, inv.ID)

				if err := putInvoice(ctx, tx, inv); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}

	return ids
}

func putInvoice(ctx context.Context, tx store.Tx, inv invoice.Invoice) error {
	if err := tx.PutInvoice(ctx, &inv); err != nil {
		return err
	}

	return tx.PutAddress(ctx, invoice.Address{
		Space:     chain.Space{Family: chain.EVM},
		Address:   inv.Options[0].Address,
		InvoiceID: inv.ID,
	})
}
