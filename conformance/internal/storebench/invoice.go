package storebench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

var owner = event.Owner{AccountID: "acc", Livemode: true}

// created numbers the invoices of all benchmarks of a process.
var created atomic.Int64

// recordID returns the n-th id: ids sort as their numbers.
func recordID(n int) string { return fmt.Sprintf("%024x", n+1) }

// timeAt returns a time n minutes after the first.
func timeAt(n int) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Minute)
}

// createInvoice stores an invoice as the API does: one transaction of 4 records.
func createInvoice(ctx context.Context, st store.Store) error {
	inv := newInvoice(int(created.Add(1)))
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
		Envelope:  envelope,
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

// newInvoice returns the n-th invoice, as the API makes it: three options, one of them selected.
func newInvoice(n int) invoice.Invoice {
	inv := invoice.Invoice{
		ID:                    recordID(n),
		Owner:                 owner,
		Number:                int64(n),
		Kind:                  invoice.Fiat,
		Status:                invoice.Open,
		Currency:              "EUR",
		OrderID:               fmt.Sprint("order-", n),
		CustomerEmail:         fmt.Sprintf("customer%d@example.com", n),
		Metadata:              map[string]string{"cart": "1234"},
		CreatedAt:             timeAt(n),
		ExpiresAt:             timeAt(n + 1440),
		PreSelectionExpiresAt: timeAt(n + 120),
		DueAt:                 timeAt(n + 1440),
		Sequence:              1,
	}
	for i, network := range []string{"ethereum", "bitcoin", "ethereum"} {
		inv.Options = append(
			inv.Options,
			invoice.Option{
				ID:       recordID(3*n + i),
				Network:  network,
				Asset:    "ETH",
				AssetID:  "0123456789abcdef01234567",
				Decimals: 18,
			},
		)
	}

	inv.Options[0].Address = chain.Address(fmt.Sprintf("0x%040x", n))
	inv.Options[0].AmountDue = chain.Pow10(16)

	return inv
}

var envelope = []byte(
	`{"id":"evt_","type":"invoice.created","api_version":"v1","livemode":true,"sequence":1,"data":{` +
		`"object":{"id":"","status":"open"}}}`,
)
