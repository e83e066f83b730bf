package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Deliveries tests that deliveries are claimed fairly and by one process each, and are pruned with
// their events.
func Deliveries(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, []testCase{
		{"Deliveries/Claim", testClaim},
		{"Deliveries/ClaimFairly", testClaimFairly},
		{"Deliveries/ClaimExcept", testClaimExcept},
		{"Deliveries/ClaimLive", testClaimLive},
		{"Deliveries/ClaimOnce", testClaimOnce},
		{"Deliveries/ClaimAfterResult", testClaimAfterResult},
		{"Deliveries/ByID", testByID},
		{"Deliveries/Backlogs", testBacklogs},
		{"Attention", testAttention},
		{"Deliveries/Fail", testFailDeliveries},
		{"Deliveries/Prune", testPruneDeliveries},
		{"Events/Prune", testPruneEvents},
		{"Endpoints/OfOwner", testEndpointsOf},
	})
}

func deliveryID(delivery webhook.Delivery) string { return delivery.ID }

// putDeliveries puts pending deliveries. The n-th is due at timeAt(due(n)), to endpoint(n).
func putDeliveries(
	t *testing.T,
	st store.Store,
	count int,
	endpoint func(n int) string,
	due func(n int) int,
) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range count {
			delivery := webhook.Delivery{
				ID:            recordID(n),
				Owner:         owners[0],
				EndpointID:    endpoint(n),
				EventID:       fmt.Sprint("evt_", n),
				Status:        webhook.DeliveryPending,
				NextAttemptAt: timeAt(due(n)),
				CreatedAt:     timeAt(n),
			}
			if err := tx.PutDeliveries(ctx, &delivery); err != nil {
				return err
			}
		}

		return nil
	})
}

// testBacklogs counts what is due of each account and mode, where the store can.
func testBacklogs(t *testing.T, st store.Store) {
	counting, ok := st.(webhook.BacklogReader)
	if !ok {
		t.Skip("the store is no webhook.BacklogReader: Health shows only what its own process claimed")
	}

	put := func(n, owner, made, next, attempts int, status webhook.DeliveryStatus) {
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			return tx.PutDeliveries(ctx, &webhook.Delivery{
				ID:            recordID(n),
				Owner:         owners[owner],
				EndpointID:    fmt.Sprint("e", n%2),
				Status:        status,
				Attempts:      attempts,
				NextAttemptAt: timeAt(next),
				CreatedAt:     timeAt(made),
			})
		})
	}

	put(0, 0, 3, 3, 0, webhook.DeliveryPending)   // due
	put(1, 0, 2, 9, 0, webhook.DeliveryPending)   // put off, never tried: due since it was made
	put(2, 0, 0, 4, 1, webhook.DeliveryPending)   // due for a second attempt
	put(3, 0, 0, 6, 1, webhook.DeliveryPending)   // not due yet
	put(4, 0, 0, 0, 1, webhook.DeliverySucceeded) // over
	put(5, 1, 5, 5, 0, webhook.DeliveryPending)   // due at exactly that time
	put(6, 2, 1, 6, 2, webhook.DeliveryPending)   // not due yet

	now := timeAt(5)
	claimDeliveries(t, st, "p", now, 1, 1)

	got, err := counting.Backlogs(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}

	want := map[event.Owner]webhook.Backlog{
		owners[0]: {Owner: owners[0], Due: 3, Since: timeAt(2)},
		owners[1]: {Owner: owners[1], Due: 1, Since: timeAt(5)},
	}

	if len(got) != len(want) {
		t.Errorf("%d backlogs, want %d: %+v", len(got), len(want), got)
	}

	for _, b := range got {
		if w := want[b.Owner]; b.Due != w.Due || !b.Since.Equal(w.Since) {
			t.Errorf("%+v, want %+v", b, w)
		}
	}
}

// expectClaimed checks deliveries that were claimed at now for the first time.
func expectClaimed(t *testing.T, st store.Store, process string, now time.Time, claimed []webhook.Delivery) {
	t.Helper()

	for _, delivery := range claimed {
		claimed := delivery.ClaimedBy == process && delivery.ClaimedUntil.Equal(now.Add(time.Minute))
		if !claimed || !delivery.LapsedAt.IsZero() || delivery.Fence != 1 {
			t.Errorf("a claimed delivery: %+v", delivery)
		}

		stored, err := st.Delivery(t.Context(), delivery.Owner, delivery.ID)
		if err != nil {
			t.Fatal(err)
		}

		expectEqual(t, "as it is stored", delivery, stored)
	}
}

// testLapsedClaims claims deliveries whose claims, made at now, have run out.
func testLapsedClaims(t *testing.T, st store.Store, now time.Time) {
	t.Helper()

	later := now.Add(61 * time.Second)
	claimed := claimDeliveries(t, st, "p3", later, 10, 10)
	expectIDs(
		t, "after the claims ran out", claimed, nil, deliveryID,
		[]string{recordID(9), recordID(8), recordID(7), recordID(5), recordID(4)}, false,
	)

	for _, delivery := range claimed[:4] {
		if delivery.Fence != 2 || delivery.ClaimedBy != "p3" ||
			!delivery.LapsedAt.Equal(now.Add(time.Minute)) {
			t.Errorf("a delivery claimed again: %+v", delivery)
		}
	}

	if fresh := claimed[4]; fresh.Fence != 1 || !fresh.LapsedAt.IsZero() {
		t.Errorf("a delivery claimed for the first time: %+v", fresh)
	}

	// A claim that was given back has not lapsed.
	back := claimed[0]
	back.ClaimedBy, back.ClaimedUntil, back.LapsedAt = "", time.Time{}, time.Time{}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.PutDeliveries(ctx, &back) })

	last := claimDeliveries(t, st, "p4", later, 10, 10)
	if len(last) != 1 || last[0].ID != back.ID || !last[0].LapsedAt.IsZero() || last[0].Fence != 3 {
		t.Errorf("after one was given back: %+v", last)
	}
}

// updateAmongMany is Update for one of many processes: a store may give up beside so many others, and a worker comes
// back.
func updateAmongMany(
	t *testing.T,
	st store.Store,
	f func(ctx context.Context, tx store.Tx) error,
) error {
	for {
		if err := st.Update(t.Context(), f); !errors.Is(err, fault.Conflict) {
			return err
		}
	}
}
