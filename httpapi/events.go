package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/webhook"
)

// storedEvent is an event's stored envelope, byte for byte as its deliveries send it.
type storedEvent struct{ envelope json.RawMessage }

// MarshalJSON returns the envelope.
func (e storedEvent) MarshalJSON() ([]byte, error) { return e.envelope, nil }

// Schema documents the envelope.
func (storedEvent) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[eventOf[anyObject]](), true, "Event")
}

// eventOf documents the envelope of events (decisions part 8) with an object of type T.
type eventOf[T any] struct {
	ID         string     `json:"id" pattern:"^evt_[0-9a-f]{24}$"`
	Type       event.Type `json:"type" example:"invoice.paid"`
	APIVersion string     `json:"api_version" enum:"v1"`
	CreatedAt  string     `json:"created_at" format:"date-time"`
	Livemode   bool       `json:"livemode"`
	Sequence   int64      `json:"sequence"`

	Data    dataOf[T]    `json:"data"`
	Request eventRequest `json:"request"`
}

// dataOf is the data of an event.
type dataOf[T any] struct {
	Object             T              `json:"object"`
	PreviousAttributes map[string]any `json:"previous_attributes,omitempty"`
}

type eventRequest struct {
	ID             string `json:"id,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
}

// anyObject is the object of an event of any type.
type anyObject = map[string]any

// eventSchema returns the type that documents the events of a type, by the type of their object.
func eventSchema(t event.Type) reflect.Type {
	kind, name, _ := strings.Cut(string(t), ".")

	switch {
	case kind == "payment",
		kind == "invoice" && strings.HasPrefix(name, "payment_") && t != event.InvoicePaymentReversed:
		return reflect.TypeFor[eventOf[engine.EventPayment]]()
	case kind == "invoice":
		return reflect.TypeFor[eventOf[invoice.Resource]]()
	case kind == "deposit":
		return reflect.TypeFor[eventOf[engine.EventDeposit]]()
	case kind == "settlement":
		return reflect.TypeFor[eventOf[settlement.Resource]]()
	case kind == "payout":
		return reflect.TypeFor[eventOf[payout.Resource]]()
	case kind == "refund":
		return reflect.TypeFor[eventOf[payout.RefundResource]]()
	case kind == "webhook_endpoint", t == event.Ping:
		return reflect.TypeFor[eventOf[webhook.EndpointResource]]()
	}

	return reflect.TypeFor[eventOf[anyObject]]()
}

type eventQuery struct {
	Type          []event.Type `query:"type" maxLength:"256"`
	ObjectID      string       `query:"object_id" pattern:"^[0-9a-f]{24}$"`
	CreatedAfter  time.Time    `query:"created_after"`
	CreatedBefore time.Time    `query:"created_before"`
}

// daysOrHours returns a duration in words: in days if it is a whole number of at least two days, else in
// hours.
func daysOrHours(d time.Duration) string {
	const day = 24 * time.Hour

	if d%day == 0 && d > day {
		return fmt.Sprintf("%d days", d/day)
	}

	return fmt.Sprintf("%d hours", d/time.Hour)
}

// events returns the operations on events.
func (a *api) events() []operation {
	const tag = "Events"

	return []operation{
		list(operation{
			id:          "listEvents",
			path:        "/v1/events",
			tag:         tag,
			scope:       account.EventsRead,
			summary:     "List events, newest first",
			description: "Events are kept for " + daysOrHours(a.KeepEvents()) + ".",
		}, a.listEvents),
		get(operation{
			id:      "getEvent",
			path:    "/v1/events/{id}",
			tag:     tag,
			scope:   account.EventsRead,
			summary: "Read an event",
		}, a.getEvent),
		write(operation{
			id:      "resendEvent",
			method:  "POST",
			path:    "/v1/events/{id}/resend",
			tag:     tag,
			scope:   account.WebhooksWrite,
			summary: "Deliver an event again to every endpoint that is subscribed to it",
			codes:   []string{"409 webhook_endpoint_none"},
		}, a.resendEvent),
		list(operation{
			id:      "listEventDeliveries",
			path:    "/v1/events/{id}/deliveries",
			tag:     tag,
			scope:   account.EventsRead,
			summary: "List the deliveries of an event, newest first",
		}, a.listEventDeliveries),
	}
}

// listEvents lists events; an unknown type is fault.Invalid.
func (a *api) listEvents(ctx context.Context, c *call, q eventQuery) (page[storedEvent], error) {
	known := map[event.Type]bool{event.Ping: true}
	for _, t := range event.Types() {
		known[t] = true
	}

	for _, t := range q.Type {
		if !known[t] {
			return page[storedEvent]{}, invalid("type", "%q is no event type", truncate(string(t)))
		}
	}

	records, more, err := a.Webhooks.ListEvents(ctx, event.Filter{
		Owner:         c.owner,
		Types:         q.Type,
		ObjectID:      q.ObjectID,
		CreatedAfter:  q.CreatedAfter,
		CreatedBefore: q.CreatedBefore,
		After:         c.after,
		Limit:         c.limit,
	})

	return pageOf(
		records, more, err, func(e event.Event) storedEvent { return storedEvent{e.Envelope} },
		func(e event.Event) string { return e.ID },
	)
}

// getEvent reads an event as it was rendered when it happened.
func (a *api) getEvent(ctx context.Context, c *call, _ none) (storedEvent, error) {
	e, err := a.Webhooks.GetEvent(ctx, c.owner, c.id)
	return storedEvent{e.Envelope}, err
}

// resendEvent creates a delivery to each endpoint that is subscribed to the event.
func (a *api) resendEvent(
	_ context.Context,
	c *call,
	_ none,
) (commit[listing[webhook.DeliveryResource]], error) {
	return func(ctx context.Context, tx payments.Tx) (listing[webhook.DeliveryResource], error) {
		deliveries, err := a.Webhooks.In(tx).ResendEvent(ctx, c.owner, c.id)

		out := listing[webhook.DeliveryResource]{Data: make([]webhook.DeliveryResource, len(deliveries))}
		for i, d := range deliveries {
			out.Data[i] = d.Resource(false)
		}

		return out, err
	}, nil
}

// listEventDeliveries lists the deliveries of an event.
func (a *api) listEventDeliveries(
	ctx context.Context,
	c *call,
	_ none,
) (page[webhook.DeliveryResource], error) {
	if _, err := a.Webhooks.GetEvent(ctx, c.owner, c.id); err != nil {
		return page[webhook.DeliveryResource]{}, err
	}

	return a.deliveriesPage(
		ctx, webhook.DeliveryFilter{Owner: c.owner, EventID: c.id, After: c.after, Limit: c.limit},
	)
}
