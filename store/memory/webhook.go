package memory

// This file keeps events, endpoints and deliveries.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/webhook"
)

var (
	events        = newKind("event", func(e *event.Event) string { return e.ID }, nil)
	eventsByOwner = events.ordered(
		func(e *event.Event) (string, string, bool) { return ownerKey(e.Owner), e.ID, true },
	)
	eventsByObject = events.ordered(
		func(e *event.Event) (string, string, bool) { return e.ObjectID, e.ID, true },
	)
	eventsByAge = events.ordered(
		func(e *event.Event) (string, string, bool) { return "", join(moment(e.CreatedAt), e.ID), true },
	)

	endpoints = newKind(
		"webhook endpoint", func(e *webhook.Endpoint) string { return e.ID },
		func(e *webhook.Endpoint) *int64 { return &e.Version },
	)
	endpointsByOwner = endpoints.ordered(
		func(e *webhook.Endpoint) (string, string, bool) { return ownerKey(e.Owner), e.ID, true },
	)

	deliveries = newKind(
		"webhook delivery", func(d *webhook.Delivery) string { return d.ID },
		func(d *webhook.Delivery) *int64 { return &d.Version },
	)
	deliveriesByOwner = deliveries.ordered(
		func(d *webhook.Delivery) (string, string, bool) { return ownerKey(d.Owner), d.ID, true },
	)
	deliveriesByEvent = deliveries.ordered(
		func(d *webhook.Delivery) (string, string, bool) { return d.EventID, d.ID, true },
	)
	deliveriesByEndpoint = deliveries.ordered(
		func(d *webhook.Delivery) (string, string, bool) { return d.EndpointID, d.ID, true },
	)
	deliveriesPending = deliveries.ordered(func(d *webhook.Delivery) (string, string, bool) {
		return d.EndpointID, d.ID, d.Status == webhook.DeliveryPending
	})
	deliveriesByDue = deliveries.ordered(func(d *webhook.Delivery) (string, string, bool) {
		return "", join(
				moment(d.NextAttemptAt), d.ID,
			), d.Status == webhook.DeliveryPending &&
				!d.NextAttemptAt.IsZero()
	})
	deliveriesEnded = deliveries.ordered(func(d *webhook.Delivery) (string, string, bool) {
		return "", join(moment(d.CreatedAt), d.ID), d.Status != webhook.DeliveryPending
	})
)

func (r *reader) Event(ctx context.Context, owner event.Owner, id string) (event.Event, error) {
	return get(ctx, r, events, id, func(e *event.Event) bool { return e.Owner == owner })
}

func (r *reader) EventsByID(ctx context.Context, ids []string) ([]event.Event, error) {
	return several(ctx, r, events, ids)
}

func (r *reader) Events(ctx context.Context, f event.Filter) ([]event.Event, error) {
	ix, bucket := eventsByOwner, ownerKey(f.Owner)
	if f.ObjectID != "" {
		ix, bucket = eventsByObject, f.ObjectID
	}

	return scanRows(ctx, r, ix, bucket, page(f.After, f.Limit, func(e *event.Event) bool {
		return e.Owner == f.Owner && passes(f.Types, e.Type) &&
			within(e.CreatedAt, f.CreatedAfter, f.CreatedBefore)
	}))
}

// AppendEvents is PutEvents: the reactions to events are the engine's.
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

		e.Payload, e.Previous = nil, nil
		if err := add(ctx, tx, events, &e); err != nil {
			return err
		}
	}

	return nil
}

func (tx *transaction) PruneEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	return prune(ctx, tx, eventsByAge, before, limit, func(e *event.Event) bool {
		if !e.CreatedAt.Before(before) {
			return false
		}

		return !tx.pendingOf(e.ID)
	})
}

// pendingOf reports whether an event has yet to be delivered. It is called while the committed rows
// are locked for reading.
func (tx *transaction) pendingOf(eventID string) bool {
	above := in(tx.over, deliveries)
	pending := false
	see := func(t *table[webhook.Delivery], above *table[webhook.Delivery]) {
		if t == nil {
			return
		}

		w := window[webhook.Delivery]{
			match: func(d *webhook.Delivery) bool { return d.Status == webhook.DeliveryPending },
			limit: 1,
		}
		pending = pending || len(w.pick(nil, t.buckets[deliveriesByEvent.slot][eventID], above)) > 0
	}
	see(above, nil)
	see(in(tx.base, deliveries), above)

	return pending
}

func (r *reader) WebhookEndpoint(
	ctx context.Context,
	owner event.Owner,
	id string,
) (webhook.Endpoint, error) {
	return get(ctx, r, endpoints, id, func(e *webhook.Endpoint) bool { return e.Owner == owner })
}

func (r *reader) WebhookEndpoints(ctx context.Context, f webhook.EndpointFilter) ([]webhook.Endpoint, error) {
	return scanRows(
		ctx, r, endpointsByOwner, ownerKey(f.Owner), page[webhook.Endpoint](f.After, f.Limit, nil),
	)
}

func (r *reader) EndpointsByID(ctx context.Context, ids []string) ([]webhook.Endpoint, error) {
	return several(ctx, r, endpoints, ids)
}

func (tx *transaction) EndpointsOf(ctx context.Context, owner event.Owner) ([]webhook.Endpoint, error) {
	return scanRows(ctx, &tx.reader, endpointsByOwner, ownerKey(owner), window[webhook.Endpoint]{
		match: func(e *webhook.Endpoint) bool { return e.Status != webhook.Disabled },
	})
}

func (tx *transaction) PutEndpoint(ctx context.Context, e *webhook.Endpoint) error {
	return put(ctx, tx, endpoints, e)
}

func (tx *transaction) DeleteEndpoint(ctx context.Context, id string) error {
	return remove(ctx, tx, endpoints, id)
}

func (r *reader) Delivery(ctx context.Context, owner event.Owner, id string) (webhook.Delivery, error) {
	return get(ctx, r, deliveries, id, func(d *webhook.Delivery) bool { return d.Owner == owner })
}

func (r *reader) Deliveries(ctx context.Context, f webhook.DeliveryFilter) ([]webhook.Delivery, error) {
	ix, bucket := deliveriesByOwner, ownerKey(f.Owner)
	switch {
	case f.EventID != "":
		ix, bucket = deliveriesByEvent, f.EventID
	case f.EndpointID != "":
		ix, bucket = deliveriesByEndpoint, f.EndpointID
	}

	return scanRows(ctx, r, ix, bucket, page(f.After, f.Limit, func(d *webhook.Delivery) bool {
		return d.Owner == f.Owner && passes(f.Statuses, d.Status) &&
			(f.EndpointID == "" || d.EndpointID == f.EndpointID)
	}))
}

func (r *reader) DeliveriesByID(ctx context.Context, ids []string) ([]webhook.Delivery, error) {
	return several(ctx, r, deliveries, ids)
}

func (r *reader) PendingDeliveries(ctx context.Context, endpointID string) (int, error) {
	found, err := scanStored(ctx, r, deliveriesPending, endpointID, window[webhook.Delivery]{})
	return len(found), err
}

func (tx *transaction) PutDeliveries(ctx context.Context, d ...*webhook.Delivery) error {
	return putAll(ctx, tx, deliveries, d)
}

func (tx *transaction) ClaimDeliveries(
	ctx context.Context,
	owner string,
	now, until time.Time,
	limit, perEndpoint int,
) ([]webhook.Delivery, error) {
	taken := map[string]int{}

	found, err := scanRows(ctx, &tx.reader, deliveriesByDue, "", window[webhook.Delivery]{
		to:    join(moment(now), "\xff"),
		match: func(d *webhook.Delivery) bool { return !d.ClaimedUntil.After(now) },
	})
	if err != nil {
		return nil, err
	}

	var claimed []webhook.Delivery
	for _, d := range found {
		if limit > 0 && len(claimed) == limit {
			break
		}

		if perEndpoint > 0 && taken[d.EndpointID] == perEndpoint {
			continue
		}

		taken[d.EndpointID]++
		d.LapsedAt = d.ClaimedUntil

		d.ClaimedBy, d.ClaimedUntil, d.Fence = owner, until.UTC().Truncate(time.Microsecond), d.Fence+1
		if err := put(ctx, tx, deliveries, &d); err != nil {
			return nil, err
		}

		claimed = append(claimed, d)
	}

	return claimed, nil
}

func (tx *transaction) FailDeliveries(ctx context.Context, endpointID string) error {
	pending, err := scanRows(ctx, &tx.reader, deliveriesPending, endpointID, window[webhook.Delivery]{})
	if err != nil {
		return err
	}

	for _, d := range pending {
		d.Status, d.NextAttemptAt = webhook.DeliveryFailed, time.Time{}
		if err := put(ctx, tx, deliveries, &d); err != nil {
			return err
		}
	}

	return nil
}

func (tx *transaction) PruneDeliveries(ctx context.Context, before time.Time, limit int) (int, error) {
	return prune(
		ctx, tx, deliveriesEnded, before, limit,
		func(d *webhook.Delivery) bool { return d.CreatedAt.Before(before) },
	)
}
