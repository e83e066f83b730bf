package conformance

// BenchmarkStore: what the hot paths cost on a store.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// benchMade numbers the invoices of all benchmarks of a process.
var benchMade atomic.Int64

var benchOwner = event.Owner{AccountID: "acc", Livemode: true}

// storeBenchCreate makes an invoice as the API does: one transaction of 4 records.
func storeBenchCreate(ctx context.Context, st store.Store) error {
	n, owner := int(benchMade.Add(1)), benchOwner
	inv := storeBenchInvoice(n, owner)
	address := invoice.Address{
		Space:     chain.Space{Family: chain.EVM, Livemode: true},
		Address:   inv.Options[0].Address,
		Kind:      invoice.ForOption,
		Owner:     owner,
		InvoiceID: inv.ID,
		Network:   "ethereum",
		CreatedAt: inv.CreatedAt,
	}
	happened := event.Event{
		ID:        "evt_" + inv.ID,
		Owner:     owner,
		Type:      event.InvoiceCreated,
		ObjectID:  inv.ID,
		InvoiceID: inv.ID,
		Sequence:  1,
		Envelope:  storeBenchEnvelope,
		CreatedAt: inv.CreatedAt,
	}
	delivery := webhook.Delivery{
		ID:            inv.ID,
		Owner:         owner,
		EventID:       happened.ID,
		EventType:     happened.Type,
		InvoiceID:     inv.ID,
		EndpointID:    "endpoint",
		Trigger:       webhook.ByEvent,
		Status:        webhook.DeliveryPending,
		NextAttemptAt: inv.CreatedAt,
		CreatedAt:     inv.CreatedAt,
	}

	return st.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.PutInvoice(ctx, &inv); err != nil {
			return err
		}

		if err := tx.PutAddress(ctx, address); err != nil {
			return err
		}

		if err := tx.PutEvents(ctx, happened); err != nil {
			return err
		}

		return tx.PutDeliveries(ctx, &delivery)
	})
}

// BenchmarkCreate compares creations with a baseline in the same database: insert commits one row
// of a table of two columns, id and body. Both are measured in turns of half a second, so that what
// else the machine does meets both, and the ratio is the median of the turns' ratios. Each runs in
// 8 and in 32 goroutines.
func BenchmarkCreate(b *testing.B, st store.Store, insert func(ctx context.Context, id, body string) error) {
	const (
		rounds, turn = 12, 500 * time.Millisecond
		body         = "some text of the length of a small record, which this is"
	)

	measure := func(goroutines int, f func() error) float64 {
		var (
			done atomic.Int64
			wg   sync.WaitGroup
		)

		began := time.Now()

		for range goroutines {
			wg.Go(func() {
				for time.Since(began) < turn {
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
	for _, goroutines := range []int{8, 32} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			var ratios, creates, commits []float64

			for b.Loop() {
				for range rounds {
					raw := measure(
						goroutines,
						func() error { return insert(b.Context(), storeID(int(benchMade.Add(1))), body) },
					)
					made := measure(goroutines, func() error { return storeBenchCreate(b.Context(), st) })
					ratios, creates, commits = append(
						ratios, made/raw,
					), append(
						creates, made,
					), append(
						commits, raw,
					)
				}
			}

			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(median(creates), "creates/s")
			b.ReportMetric(median(commits), "inserts/s")
			b.ReportMetric(0, "ns/op") // a turn's length says nothing
		})
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkStore measures a store that factory makes: creations as the API makes them (one
// transaction of 4 records), in 8 goroutines per processor, reads by id, pages of 50 out of many,
// and the matching of a batch of 1,000 recipients.
func BenchmarkStore(b *testing.B, factory func(b *testing.B) store.Store) {
	owner := benchOwner

	b.Run("Create", func(b *testing.B) {
		st := factory(b)
		b.SetParallelism(8)
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := storeBenchCreate(b.Context(), st); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
	})
	filled := func(b *testing.B, n int) (store.Store, []string) {
		st := factory(b)

		var ids []string

		for from := 0; from < n; from += 500 {
			err := st.Update(b.Context(), func(ctx context.Context, tx store.Tx) error {
				ids = ids[:from]
				for i := from; i < min(from+500, n); i++ {
					inv := storeBenchInvoice(i, owner)

					ids = append(ids, inv.ID)
					if err := tx.PutInvoice(ctx, &inv); err != nil {
						return err
					}

					if err := tx.PutAddress(
						ctx,
						invoice.Address{
							Space:     chain.Space{Family: chain.EVM},
							Address:   inv.Options[0].Address,
							InvoiceID: inv.ID,
						},
					); err != nil {
						return err
					}
				}

				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}

		return st, ids
	}

	const many = 5000

	b.Run("Read", func(b *testing.B) {
		st, ids := filled(b, many)
		b.ReportAllocs()

		for i := 0; b.Loop(); i++ {
			if _, err := st.Invoice(b.Context(), owner, ids[i*7919%many]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Page", func(b *testing.B) {
		st, ids := filled(b, many)
		b.ReportAllocs()

		for i := 0; b.Loop(); i++ {
			page, err := st.Invoices(
				b.Context(),
				invoice.Filter{Owner: owner, After: ids[100+i*7919%(many-100)], Limit: 50},
			)
			if err != nil || len(page) != 50 {
				b.Fatal(len(page), err)
			}
		}
	})
	b.Run("Match", func(b *testing.B) {
		st, _ := filled(b, many)

		batch := make([]chain.Address, 1000)
		for i := range batch { // one in 100 is ours
			batch[i] = storeBenchInvoice(i*50+many-500, owner).Options[0].Address
		}

		b.ReportAllocs()

		for b.Loop() {
			if found, err := st.MatchAddresses(
				b.Context(), chain.Space{Family: chain.EVM}, batch,
			); err != nil ||
				len(found) != 10 {
				b.Fatal(len(found), err)
			}
		}
	})
}

var storeBenchEnvelope = []byte(
	`{"id":"evt_","type":"invoice.created","api_version":"v1","livemode":true,"sequence":1,"data":{` +
		`"object":{"id":"","status":"open"}}}`,
)

// storeBenchInvoice is an invoice as the API makes it: three options, one of them selected.
func storeBenchInvoice(n int, owner event.Owner) invoice.Invoice {
	inv := invoice.Invoice{
		ID:                    storeID(n),
		Owner:                 owner,
		Number:                int64(n),
		Kind:                  invoice.Fiat,
		Status:                invoice.Open,
		Currency:              "EUR",
		OrderID:               fmt.Sprint("order-", n),
		CustomerEmail:         fmt.Sprintf("customer%d@example.com", n),
		Metadata:              map[string]string{"cart": "1234"},
		CreatedAt:             storeAt(n),
		ExpiresAt:             storeAt(n + 1440),
		PreSelectionExpiresAt: storeAt(n + 120),
		DueAt:                 storeAt(n + 1440),
		Sequence:              1,
	}
	for i, network := range []string{"ethereum", "bitcoin", "ethereum"} {
		inv.Options = append(
			inv.Options,
			invoice.Option{
				ID:       storeID(3*n + i),
				Network:  network,
				Asset:    "ETH",
				AssetID:  "0123456789abcdef01234567",
				Decimals: 18,
			},
		)
	}

	inv.Options[0].Address, inv.Options[0].AmountDue = chain.Address(
		fmt.Sprintf("0x%040x", n),
	), chain.Pow10(
		16,
	)

	return inv
}
