package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// putResults stores that claimed deliveries were tried: every second succeeded, the others are due again later.
func putResults(ctx context.Context, tx store.Tx, claimed []webhook.Delivery) error {
	for i, d := range claimed {
		d.Attempts, d.ClaimedBy, d.ClaimedUntil = 1, "", time.Time{}

		if d.NextAttemptAt = timeAt(60); i%2 == 0 {
			d.Status, d.NextAttemptAt = webhook.DeliverySucceeded, time.Time{}
		}

		if err := tx.PutDeliveries(ctx, &d); err != nil {
			return err
		}
	}

	return nil
}

// testFailDeliveries ends the pending deliveries of an endpoint.
func testFailDeliveries(t *testing.T, st store.Store) {
	putDeliveries(t, st, 6, func(n int) string { return fmt.Sprint("e", n%2) }, func(int) int { return 0 })

	before, err := st.Delivery(t.Context(), owners[0], recordID(0))
	if err != nil {
		t.Fatal(err)
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.FailDeliveries(ctx, "e0") })

	for n := range 6 {
		delivery, err := st.Delivery(t.Context(), owners[0], recordID(n))

		failed := delivery.Status == webhook.DeliveryFailed && delivery.NextAttemptAt.IsZero()
		if err != nil || failed != (n%2 == 0) {
			t.Errorf("delivery %d: %+v %v", n, delivery, err)
		}
	}

	if n, err := st.PendingDeliveries(t.Context(), "e0"); err != nil || n != 0 {
		t.Errorf("PendingDeliveries: %d %v", n, err)
	}

	expectError(
		t, st, fault.Conflict, "a result for a delivery that was ended meanwhile",
		func(ctx context.Context, tx store.Tx) error {
			return tx.PutDeliveries(ctx, &before)
		},
	)
}

// testPruneDeliveries prunes ended deliveries made before a time, in batches of 3.
func testPruneDeliveries(t *testing.T, st store.Store) {
	putDeliveries(t, st, 10, func(n int) string { return fmt.Sprint("e", n%2) }, func(int) int { return 0 })
	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.FailDeliveries(ctx, "e0") })

	// Ended are 0, 2, 4, 6, 8; created before timeAt(8) are the first four of them.
	expectPruned(
		t, st, []int{3, 1, 0},
		func(ctx context.Context, tx store.Tx) (int, error) { return tx.PruneDeliveries(ctx, timeAt(8), 3) },
	)

	all, err := st.Deliveries(t.Context(), webhook.DeliveryFilter{Owner: owners[0], Limit: 100})
	expectIDs(
		t, "what is left", all, err, deliveryID,
		[]string{recordID(1), recordID(3), recordID(5), recordID(7), recordID(8), recordID(9)}, true,
	)
}
