package conformance

// BenchmarkStore: what the hot paths cost on a store.

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
	"github.com/seed-8ee7f392/payments/webhook/event"
)

// BenchmarkStore measures a store that factory makes: creations as the API makes them (one transaction of 4 records),
// reads by id, pages of 50 out of many, and the matching of a batch of 1,000 recipients. Creations run in 8
// goroutines per processor.
func BenchmarkStore(b *testing.B, factory func(b *testing.B) store.Store) {
	owner := event.Owner{AccountID: "acc", Livemode: true}
	var made atomic.Int64
	create := func(ctx context.Context, st store.Store) error {
		n := int(made.Add(1))
		inv := storeBenchInvoice(n, owner)
		address := invoice.Address{Space: chain.Space{Family: chain.EVM, Livemode: true}, Address: inv.Options[0].Address, Kind: invoice.ForOption, Owner: owner, InvoiceID: inv.ID, Network: "ethereum", CreatedAt: inv.CreatedAt}
		happened := event.Event{ID: "evt_" + inv.ID, Owner: owner, Type: event.InvoiceCreated, ObjectID: inv.ID, InvoiceID: inv.ID, Sequence: 1, Envelope: storeBenchEnvelope, CreatedAt: inv.CreatedAt}
		delivery := webhook.Delivery{ID: inv.ID, Owner: owner, EventID: happened.ID, EventType: happened.Type, InvoiceID: inv.ID, EndpointID: "endpoint", Trigger: webhook.ByEvent, Status: webhook.DeliveryPending, NextAttemptAt: inv.CreatedAt, CreatedAt: inv.CreatedAt}
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
	b.Run("Create", func(b *testing.B) {
		st := factory(b)
		b.SetParallelism(8)
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := create(b.Context(), st); err != nil {
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
					if err := tx.PutAddress(ctx, invoice.Address{Space: chain.Space{Family: chain.EVM}, Address: inv.Options[0].Address, InvoiceID: inv.ID}); err != nil {
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
			page, err := st.Invoices(b.Context(), invoice.Filter{Owner: owner, After: ids[100+i*7919%(many-100)], Limit: 50})
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
			if found, err := st.MatchAddresses(b.Context(), chain.Space{Family: chain.EVM}, batch); err != nil || len(found) != 10 {
				b.Fatal(len(found), err)
			}
		}
	})
}

var storeBenchEnvelope = []byte(`{"id":"evt_","type":"invoice.created","api_version":"v1","livemode":true,"sequence":1,"data":{"object":{"id":"","status":"open"}}}`)

// storeBenchInvoice is an invoice as the API makes it: three options, one of them selected.
func storeBenchInvoice(n int, owner event.Owner) invoice.Invoice {
	inv := invoice.Invoice{
		ID: storeID(n), Owner: owner, Number: int64(n), Kind: invoice.Fiat, Status: invoice.Open, Currency: "EUR", OrderID: fmt.Sprint("order-", n),
		CustomerEmail: fmt.Sprintf("customer%d@example.com", n), Metadata: map[string]string{"cart": "1234"}, CreatedAt: storeAt(n), ExpiresAt: storeAt(n + 1440),
		PreSelectionExpiresAt: storeAt(n + 120), DueAt: storeAt(n + 1440), Sequence: 1,
	}
	for i, network := range []string{"ethereum", "bitcoin", "ethereum"} {
		inv.Options = append(inv.Options, invoice.Option{ID: storeID(3*n + i), Network: network, Asset: "ETH", AssetID: "0123456789abcdef01234567", Decimals: 18})
	}
	inv.Options[0].Address, inv.Options[0].AmountDue = chain.Address(fmt.Sprintf("0x%040x", n)), chain.Pow10(16)
	return inv
}
