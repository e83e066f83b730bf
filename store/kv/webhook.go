package kv

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/webhook"
)

var (
	events = newTable(
		60, "event",
		func(e *storedEvent) key { return keyOf(e.ID) },
		nil,
	)
	eventsByOwner  = events.ordered(1, func(e *storedEvent) key { return keyOf(e.Owner) })
	eventsByObject = events.ordered(2, func(e *storedEvent) key { return keyOf(e.ObjectID) })
	eventsByAge    = events.ordered(3, func(e *storedEvent) key { return keyOf(e.CreatedAt) })

	endpoints = newTable(
		61, "webhook endpoint",
		func(e *webhook.Endpoint) key { return keyOf(e.ID) },
		func(e *webhook.Endpoint) *int64 { return &e.Version },
	)
	endpointsByOwner = endpoints.ordered(1, func(e *webhook.Endpoint) key { return keyOf(e.Owner) })
)

// storedEvent is an event whose envelope is encoded as bytes: as JSON in JSON it would lose its spaces.
type storedEvent struct {
	event.Event
	Envelope []byte
}

func (e storedEvent) restore() event.Event {
	e.Event.Envelope = e.Envelope
	return e.Event
}

// restoreAll returns the events of stored ones, and passes an error through.
func restoreAll(stored []storedEvent, err error) ([]event.Event, error) {
	all := make([]event.Event, len(stored))
	for i, e := range stored {
		all[i] = e.restore()
	}

	return all, err
}

func (r *reader) Event(ctx context.Context, owner event.Owner, id string) (event.Event, error) {
	e, err := get(ctx, r, events, id, func(e *storedEvent) bool { return e.Owner == owner })
	return e.restore(), err
}

func (r *reader) EventsByID(ctx context.Context, ids []string) ([]event.Event, error) {
	return restoreAll(several(ctx, r, events, events.byID(ids)))
}

func (r *reader) Events(ctx context.Context, f event.Filter) ([]event.Event, error) {
	ix, prefix := eventsByOwner, keyOf(f.Owner)
	if f.ObjectID != "" {
		ix, prefix = eventsByObject, keyOf(f.ObjectID)
	}

	match := func(e *storedEvent) bool { return e.Owner == f.Owner && passes(f.Types, e.Type) }
	bounded := page(f.After, f.Limit, match).made(id.EventBound, f.CreatedAfter, f.CreatedBefore)

	return restoreAll(list(ctx, r, ix, prefix, bounded))
}

// AppendEvents is PutEvents: the engine runs the reactions to events.
func (tx *transaction) AppendEvents(ctx context.Context, all ...event.Event) error {
	return tx.PutEvents(ctx, all...)
}

func (tx *transaction) PutEvents(ctx context.Context, all ...event.Event) error {
	for _, e := range all {
		if e.ID == "" {
			return fault.New(
				fault.Invalid, "event_unrendered",
				"an event %s about %s has no id: events are given one and rendered before they are stored",
				e.Type, e.ObjectID,
			)
		}

		stored := storedEvent{Event: e, Envelope: e.Envelope}
		stored.Payload, stored.Previous, stored.Event.Envelope = nil, nil, nil

		if err := add(ctx, tx, events, &stored); err != nil {
			return err
		}
	}

	return nil
}

func (tx *transaction) PruneEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	return prune(ctx, tx, eventsByAge, before, limit, func(e *storedEvent) (bool, error) {
		n, err := count(ctx, &tx.reader, deliveriesPendingOf, keyOf(e.ID), window[webhook.Delivery]{})
		return n > 0, err
	})
}

func (r *reader) WebhookEndpoint(
	ctx context.Context,
	owner event.Owner,
	id string,
) (webhook.Endpoint, error) {
	return get(ctx, r, endpoints, id, func(e *webhook.Endpoint) bool { return e.Owner == owner })
}

func (r *reader) WebhookEndpoints(ctx context.Context, f webhook.EndpointFilter) ([]webhook.Endpoint, error) {
	return list(ctx, r, endpointsByOwner, keyOf(f.Owner), page[webhook.Endpoint](f.After, f.Limit, nil))
}

func (r *reader) EndpointsByID(ctx context.Context, ids []string) ([]webhook.Endpoint, error) {
	return several(ctx, r, endpoints, endpoints.byID(ids))
}

func (tx *transaction) EndpointsOf(ctx context.Context, owner event.Owner) ([]webhook.Endpoint, error) {
	return list(ctx, &tx.reader, endpointsByOwner, keyOf(owner), window[webhook.Endpoint]{
		match: func(e *webhook.Endpoint) bool { return e.Status != webhook.Disabled },
	})
}

func (tx *transaction) PutEndpoint(ctx context.Context, e *webhook.Endpoint) error {
	return put(ctx, tx, endpoints, e)
}

func (tx *transaction) DeleteEndpoint(ctx context.Context, id string) error {
	return remove(ctx, tx, endpoints, endpoints.at(id))
}
