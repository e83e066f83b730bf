package storetest

import (
	"context"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

var eventList = listOf[event.Event, event.Filter]{
	kind: "Events",
	make: func(n int, o event.Owner) event.Event {
		return event.Event{
			ID:        "evt_" + recordID(n),
			Owner:     o,
			CreatedAt: timeAt(n),
			Type:      cycle(n, event.InvoicePaid, event.InvoiceExpired, event.Ping),
			ObjectID:  cycle(n, "x", "y"),
		}
	},
	id:   func(e event.Event) string { return e.ID },
	put:  func(tx store.Tx, ctx context.Context, e *event.Event) error { return tx.AppendEvents(ctx, *e) },
	list: store.Reader.Events,
	one:  store.Reader.Event,
	filter: func(o event.Owner, after string, limit int) event.Filter {
		return event.Filter{Owner: o, After: after, Limit: limit}
	},
	filters: []filterCase[event.Event, event.Filter]{
		{
			"Types of one",
			func(f *event.Filter) { f.Types = []event.Type{event.Ping} },
			func(e event.Event) bool { return e.Type == event.Ping },
		},
		{
			"Types of two",
			func(f *event.Filter) { f.Types = []event.Type{event.Ping, event.InvoicePaid} },
			func(e event.Event) bool { return e.Type != event.InvoiceExpired },
		},
		{
			"ObjectID",
			func(f *event.Filter) { f.ObjectID = "x" },
			func(e event.Event) bool { return e.ObjectID == "x" },
		},
		{
			"Created",
			func(f *event.Filter) { f.CreatedAfter, f.CreatedBefore = rangeStart, rangeEnd },
			func(e event.Event) bool { return inRange(e.CreatedAt) },
		},
	},
}

var endpointList = listOf[webhook.Endpoint, webhook.EndpointFilter]{
	kind: "WebhookEndpoints",
	make: func(n int, o event.Owner) webhook.Endpoint {
		return webhook.Endpoint{ID: recordID(n), Owner: o, CreatedAt: timeAt(n)}
	},
	id:   func(e webhook.Endpoint) string { return e.ID },
	put:  store.Tx.PutEndpoint,
	list: store.Reader.WebhookEndpoints,
	one:  store.Reader.WebhookEndpoint,
	filter: func(o event.Owner, after string, limit int) webhook.EndpointFilter {
		return webhook.EndpointFilter{Owner: o, After: after, Limit: limit}
	},
}

var deliveryList = listOf[webhook.Delivery, webhook.DeliveryFilter]{
	kind: "Deliveries",
	make: func(n int, o event.Owner) webhook.Delivery {
		return webhook.Delivery{
			ID:        recordID(n),
			Owner:     o,
			CreatedAt: timeAt(n),
			Status: cycle(
				n, webhook.DeliveryPending, webhook.DeliveryFailed,
				webhook.DeliverySucceeded,
			),
			EventID:    cycle(n, "x", "y"),
			EndpointID: cycle(n, "e", "f", "g"),
		}
	},
	id:   func(d webhook.Delivery) string { return d.ID },
	put:  single(store.Tx.PutDeliveries),
	list: store.Reader.Deliveries,
	one:  store.Reader.Delivery,
	filter: func(o event.Owner, after string, limit int) webhook.DeliveryFilter {
		return webhook.DeliveryFilter{Owner: o, After: after, Limit: limit}
	},
	filters: []filterCase[webhook.Delivery, webhook.DeliveryFilter]{
		{
			"EventID",
			func(f *webhook.DeliveryFilter) { f.EventID = "x" },
			func(d webhook.Delivery) bool { return d.EventID == "x" },
		},
		{
			"EndpointID",
			func(f *webhook.DeliveryFilter) { f.EndpointID = "f" },
			func(d webhook.Delivery) bool { return d.EndpointID == "f" },
		},
		{
			"Statuses",
			func(f *webhook.DeliveryFilter) {
				f.Statuses = []webhook.DeliveryStatus{webhook.DeliveryPending, webhook.DeliveryFailed}
			},
			func(d webhook.Delivery) bool { return d.Status != webhook.DeliverySucceeded },
		},
	},
}
