package kv

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

var (
	deliveries = newTable(
		62, "webhook delivery",
		func(d *webhook.Delivery) key { return keyOf(d.ID) },
		func(d *webhook.Delivery) *int64 { return &d.Version },
	)
	deliveriesByOwner    = deliveries.ordered(1, func(d *webhook.Delivery) key { return keyOf(d.Owner) })
	deliveriesByEvent    = deliveries.ordered(2, func(d *webhook.Delivery) key { return keyOf(d.EventID) })
	deliveriesByEndpoint = deliveries.ordered(3, func(d *webhook.Delivery) key { return keyOf(d.EndpointID) })
	deliveriesPending    = deliveries.ordered(4, func(d *webhook.Delivery) key {
		return when(d.Status == webhook.DeliveryPending, d.EndpointID)
	})
	deliveriesPendingOf = deliveries.ordered(5, func(d *webhook.Delivery) key {
		return when(d.Status == webhook.DeliveryPending, d.EventID)
	})
	deliveriesDue = deliveries.ordered(6, func(d *webhook.Delivery) key {
		due := d.Status == webhook.DeliveryPending && !d.NextAttemptAt.IsZero()
		return when(due, d.NextAttemptAt)
	})
	deliveriesEnded = deliveries.ordered(7, func(d *webhook.Delivery) key {
		return when(d.Status != webhook.DeliveryPending, d.CreatedAt)
	})
)

func (r *reader) Delivery(ctx context.Context, owner event.Owner, id string) (webhook.Delivery, error) {
	return get(ctx, r, deliveries, id, func(d *webhook.Delivery) bool { return d.Owner == owner })
}

func (r *reader) Deliveries(ctx context.Context, f webhook.DeliveryFilter) ([]webhook.Delivery, error) {
	ix, prefix := deliveriesByOwner, keyOf(f.Owner)
	switch {
	case f.EventID != "":
		ix, prefix = deliveriesByEvent, keyOf(f.EventID)
	case f.EndpointID != "":
		ix, prefix = deliveriesByEndpoint, keyOf(f.EndpointID)
	}

	return list(ctx, r, ix, prefix, page(f.After, f.Limit, func(d *webhook.Delivery) bool {
		return d.Owner == f.Owner &&
			passes(f.Statuses, d.Status) &&
			(f.EndpointID == "" || d.EndpointID == f.EndpointID)
	}))
}

func (r *reader) DeliveriesByID(ctx context.Context, ids []string) ([]webhook.Delivery, error) {
	return several(ctx, r, deliveries, deliveries.byID(ids))
}

func (r *reader) PendingDeliveries(ctx context.Context, endpointID string) (int, error) {
	return count(ctx, r, deliveriesPending, keyOf(endpointID), window[webhook.Delivery]{})
}

func (r *reader) Backlogs(ctx context.Context, now time.Time) ([]webhook.Backlog, error) {
	pending, err := list(ctx, r, deliveriesPending, nil, window[webhook.Delivery]{})
	if err != nil {
		return nil, err
	}

	of := map[event.Owner]webhook.Backlog{}

	for _, d := range pending {
		since, due := d.DueSince(now)
		if !due {
			continue
		}

		b, ok := of[d.Owner]
		if b.Owner, b.Due = d.Owner, b.Due+1; !ok || since.Before(b.Since) {
			b.Since = since
		}

		of[d.Owner] = b
	}

	return slices.Collect(maps.Values(of)), nil
}

func (tx *transaction) PutDeliveries(ctx context.Context, d ...*webhook.Delivery) error {
	return putAll(ctx, tx, deliveries, d)
}

func (tx *transaction) ClaimDeliveries(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
	taken := map[string]int{}
	free := func(d *webhook.Delivery) bool {
		if d.ClaimedUntil.After(c.Now) || c.PerEndpoint > 0 && taken[d.EndpointID] == c.PerEndpoint ||
			slices.Contains(c.Except, d.EndpointID) || c.Live && !d.Owner.Livemode {
			return false
		}

		taken[d.EndpointID]++

		return true
	}

	claimed, err := list(
		ctx, &tx.reader, deliveriesDue, nil,
		window[webhook.Delivery]{to: upTo(c.Now), match: free, limit: c.Limit},
	)
	if err != nil {
		return nil, err
	}

	for i := range claimed {
		d := &claimed[i]
		d.LapsedAt = d.ClaimedUntil
		d.ClaimedBy, d.ClaimedUntil, d.Fence = c.By, c.Until.UTC().Truncate(time.Microsecond), d.Fence+1

		if err := put(ctx, tx, deliveries, d); err != nil {
			return nil, err
		}
	}

	return claimed, nil
}

func (tx *transaction) FailDeliveries(ctx context.Context, endpointID string) error {
	pending, err := list(
		ctx, &tx.reader, deliveriesPending, keyOf(endpointID),
		window[webhook.Delivery]{},
	)
	if err != nil {
		return err
	}

	for i := range pending {
		pending[i].Status, pending[i].NextAttemptAt = webhook.DeliveryFailed, time.Time{}
		if err := put(ctx, tx, deliveries, &pending[i]); err != nil {
			return err
		}
	}

	return nil
}

func (tx *transaction) PruneDeliveries(ctx context.Context, before time.Time, limit int) (int, error) {
	return prune(ctx, tx, deliveriesEnded, before, limit, nil)
}
