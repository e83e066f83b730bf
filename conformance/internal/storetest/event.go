package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

func endpointID(endpoint webhook.Endpoint) string { return endpoint.ID }

// testByID reads what the worker needs for a batch: several records of any owner, inside the
// transaction that wrote them and outside.
func testByID(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 6 {
			if err := putDeliveryOf(ctx, tx, recordID(n), owners[n%3]); err != nil {
				return err
			}
		}

		expectByID(t, tx)

		return nil
	})
	expectByID(t, st)
}

// putDeliveryOf puts an endpoint, an event and its delivery, all of one id.
func putDeliveryOf(ctx context.Context, tx store.Tx, id string, owner event.Owner) error {
	if err := tx.PutEndpoint(ctx, &webhook.Endpoint{ID: id, Owner: owner}); err != nil {
		return err
	}

	happened := event.Event{ID: id, Owner: owner, Envelope: []byte("envelope of " + id)}
	if err := tx.PutEvents(ctx, happened); err != nil {
		return err
	}

	return tx.PutDeliveries(ctx, &webhook.Delivery{ID: id, Owner: owner, EventID: id, EndpointID: id})
}

func expectByID(t *testing.T, r store.Reader) {
	t.Helper()

	asked := []string{recordID(4), recordID(1), "none", recordID(4)}
	want := []string{recordID(1), recordID(4)}

	endpoints, err := r.EndpointsByID(t.Context(), asked)
	expectIDs(t, "EndpointsByID", endpoints, err, endpointID, want, true)

	deliveries, err := r.DeliveriesByID(t.Context(), asked)
	expectIDs(t, "DeliveriesByID", deliveries, err, deliveryID, want, true)

	events, err := r.EventsByID(t.Context(), asked)
	expectIDs(t, "EventsByID", events, err, func(evt event.Event) string { return evt.ID }, want, true)

	for _, evt := range events {
		if string(evt.Envelope) != "envelope of "+evt.ID {
			t.Errorf("event %s has the envelope %q", evt.ID, evt.Envelope)
		}
	}
}

// testPruneEvents prunes events made before a time, except one that has yet to be delivered.
func testPruneEvents(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 8 {
			happened := event.Event{ID: fmt.Sprint("evt_", n), Owner: owners[0], CreatedAt: timeAt(n)}
			if err := tx.PutEvents(ctx, happened); err != nil {
				return err
			}
		}

		// Event 1 has yet to be delivered, event 2 was.
		return tx.PutDeliveries(ctx,
			&webhook.Delivery{
				ID:      recordID(0),
				Owner:   owners[0],
				EventID: "evt_1",
				Status:  webhook.DeliveryPending,
			},
			&webhook.Delivery{
				ID:      recordID(1),
				Owner:   owners[0],
				EventID: "evt_2",
				Status:  webhook.DeliverySucceeded,
			},
		)
	})
	expectPruned(
		t, st, []int{2, 2, 0},
		func(ctx context.Context, tx store.Tx) (int, error) { return tx.PruneEvents(ctx, timeAt(5), 2) },
	)

	for n := range 8 {
		_, err := st.Event(t.Context(), owners[0], fmt.Sprint("evt_", n))

		kept := n == 1 || n >= 5
		if kept != (err == nil) || err != nil && !errors.Is(err, fault.NotFound) {
			t.Errorf("event %d after the pruning: %v", n, err)
		}
	}
}

// testEndpointsOf reads the endpoints of an owner that are not disabled.
func testEndpointsOf(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n, status := range []webhook.EndpointStatus{
			webhook.Enabled,
			webhook.Disabled,
			webhook.Failing,
			webhook.Enabled,
		} {
			owner := owners[0]
			if n == 3 {
				owner = owners[1]
			}

			endpoint := webhook.Endpoint{ID: recordID(n), Owner: owner, Status: status}
			if err := tx.PutEndpoint(ctx, &endpoint); err != nil {
				return err
			}
		}

		return nil
	})
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		got, err := tx.EndpointsOf(ctx, owners[0])
		expectIDs(t, "EndpointsOf", got, err, endpointID, []string{recordID(0), recordID(2)}, true)

		return nil
	})
}
