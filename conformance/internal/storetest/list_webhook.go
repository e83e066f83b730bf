package storetest

import (
	"context"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

var eventList = listOf[event.Event, event.Filter]{
	kind: "Events",
	make: func(n int, owner event.Owner) event.Event {
		return event.Event{
			ID:        "evt_" + recordID(n),
			Owner:     owner,
			CreatedAt: timeAt(n),
			Type:      cycle(n, event.InvoicePaid, event.InvoiceExpired, event.Ping),
			ObjectID:  cycle(n, "x", "y"),
		}
	},
	id:   func(evt event.Event) string { return evt.ID },
	put:  func(tx store.Tx, ctx context.Context, evt *event.Event) error { return tx.AppendEvents(ctx, *evt) },
	list: store.Reader.Events,
	one:  store.Reader.Event,
	filter: func(owner event.Owner, after string, limit int) event.Filter {
		return event.Filter{Owner: owner, After: after, Limit: limit}
	},
	filters: []filterCase[event.Event, event.Filter]{
		{
			"Types of one",
			func(filter *event.Filter) { filter.Types = []event.Type{event.Ping} },
			func(evt event.Event) bool { return evt.Type == event.Ping },
		},
		{
			"Types of two",
			func(filter *event.Filter) { filter.Types = []event.Type{event.Ping, event.InvoicePaid} },
			func(evt event.Event) bool { return evt.Type != event.InvoiceExpired },
		},
		{
			"ObjectID",
			func(filter *event.Filter) { filter.ObjectID = "x" },
			func(evt event.Event) bool { return evt.ObjectID == "x" },
		},
		{
			"Created",
			func(filter *event.Filter) { filter.CreatedAfter, filter.CreatedBefore = rangeStart, rangeEnd },
			func(evt event.Event) bool { return inRange(evt.CreatedAt) },
		},
	},
}

var endpointList = listOf[webhook.Endpoint, webhook.EndpointFilter]{
	kind: "WebhookEndpoints",
	make: func(n int, owner event.Owner) webhook.Endpoint {
		return webhook.Endpoint{ID: recordID(n), Owner: owner, CreatedAt: timeAt(n)}
	},
	id:   func(endpoint webhook.Endpoint) string { return endpoint.ID },
	put:  store.Tx.PutEndpoint,
	list: store.Reader.WebhookEndpoints,
	one:  store.Reader.WebhookEndpoint,
	filter: func(owner event.Owner, after string, limit int) webhook.EndpointFilter {
		return webhook.EndpointFilter{Owner: owner, After: after, Limit: limit}
	},
}

var deliveryList = listOf[webhook.Delivery, webhook.DeliveryFilter]{
	kind: "Deliveries",
	make: func(n int, owner event.Owner) webhook.Delivery {
		return webhook.Delivery{
			ID:        recordID(n),
			Owner:     owner,
			CreatedAt: timeAt(n),
			Status: cycle(
				n, webhook.DeliveryPending, webhook.DeliveryFailed,
				webhook.DeliverySucceeded,
			),
			EventID:    cycle(n, "x", "y"),
			EndpointID: cycle(n, "e", "f", "g"),
		}
	},
	id:   func(delivery webhook.Delivery) string { return delivery.ID },
	put:  single(store.Tx.PutDeliveries),
	list: store.Reader.Deliveries,
	one:  store.Reader.Delivery,
	filter: func(owner event.Owner, after string, limit int) webhook.DeliveryFilter {
		return webhook.DeliveryFilter{Owner: owner, After: after, Limit: limit}
	},
	filters: []filterCase[webhook.Delivery, webhook.DeliveryFilter]{
		{
			"EventID",
			func(filter *webhook.DeliveryFilter) { filter.EventID = "x" },
			func(delivery webhook.Delivery) bool { return delivery.EventID == "x" },
		},
		{
			"EndpointID",
			func(filter *webhook.DeliveryFilter) { filter.EndpointID = "f" },
			func(delivery webhook.Delivery) bool { return delivery.EndpointID == "f" },
		},
		{
			"Statuses",
			func(filter *webhook.DeliveryFilter) {
				filter.Statuses = []webhook.DeliveryStatus{webhook.DeliveryPending, webhook.DeliveryFailed}
			},
			func(delivery webhook.Delivery) bool { return delivery.Status != webhook.DeliverySucceeded },
		},
	},
}
