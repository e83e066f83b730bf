package storetest

// Deliveries: claimed fairly, by one process each, and pruned with their events.

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

// Deliveries tests how deliveries and events are claimed and pruned.
func Deliveries(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, deliveryTests())
}

func deliveryTests() []testCase {
	return []testCase{
		{"Deliveries/Claim", testClaim},
		{"Deliveries/ClaimFairly", testClaimFairly},
		{"Deliveries/ClaimOnce", testClaimOnce},
		{"Deliveries/ByID", testByID},
		{"Deliveries/Fail", testFailDeliveries},
		{"Deliveries/Prune", testPruneDeliveries},
		{"Events/Prune", testPruneEvents},
		{"Endpoints/OfOwner", testEndpointsOf},
	}
}

func deliveryID(d webhook.Delivery) string { return d.ID }

// putDeliveries puts pending deliveries: the n-th is due at timeAt(at(n)) at the endpoint of(n).
func putDeliveries(t *testing.T, st store.Store, count int, of func(n int) string, at func(n int) int) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range count {
			d := webhook.Delivery{
				ID:            recordID(n),
				Owner:         owners[0],
				EndpointID:    of(n),
				EventID:       fmt.Sprint("evt_", n),
				Status:        webhook.DeliveryPending,
				NextAttemptAt: timeAt(at(n)),
				CreatedAt:     timeAt(n),
			}
			if err := tx.PutDeliveries(ctx, &d); err != nil {
				return err
			}
		}

		return nil
	})
}

// claimDeliveries claims deliveries in a transaction of its own.
func claimDeliveries(
	t *testing.T,
	st store.Store,
	owner string,
	now time.Time,
	limit, perEndpoint int,
) (got []webhook.Delivery) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx store.Tx) (err error) {
		got, err = tx.ClaimDeliveries(ctx, owner, now, now.Add(time.Minute), limit, perEndpoint)
		return err
	})

	return got
}

func testClaim(t *testing.T, st store.Store) {
	// Due in the reverse order of ids.
	putDeliveries(
		t, st, 10, func(n int) string { return fmt.Sprint("e", n) },
		func(n int) int { return 10 - n },
	)

	now := timeAt(5)
	got := claimDeliveries(t, st, "p1", now, 3, 10)
	expectIDs(
		t, "the first claim", got, nil, deliveryID, []string{recordID(9), recordID(8), recordID(7)},
		false,
	)

	for _, d := range got {
		if d.ClaimedBy != "p1" || !d.ClaimedUntil.Equal(now.Add(time.Minute)) || !d.LapsedAt.IsZero() ||
			d.Fence != 1 {
			t.Errorf("a claimed delivery: %+v", d)
		}

		stored, err := st.Delivery(t.Context(), d.Owner, d.ID)
		if err != nil {
			t.Fatal(err)
		}

		expectEqual(t, "as it is stored", d, stored)
	}

	got = claimDeliveries(t, st, "p2", now, 10, 10)
	expectIDs(t, "the second claim", got, nil, deliveryID, []string{recordID(6), recordID(5)}, false)

	if again := claimDeliveries(t, st, "p2", now.Add(59*time.Second), 10, 10); len(again) != 0 {
		t.Errorf("deliveries are claimed twice: %v", idsOf(again, deliveryID))
	}

	// A result is stored from the record that was claimed; then it is due later, or never.
	d := got[0]
	d.Status, d.NextAttemptAt, d.ClaimedUntil = webhook.DeliverySucceeded, time.Time{}, time.Time{}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.PutDeliveries(ctx, &d) })

	later := now.Add(61 * time.Second)
	expired := claimDeliveries(t, st, "p3", later, 10, 10)
	expectIDs(
		t, "after the claims ran out", expired, nil, deliveryID,
		[]string{recordID(9), recordID(8), recordID(7), recordID(5), recordID(4)}, false,
	)

	for _, d := range expired[:4] {
		if d.Fence != 2 || d.ClaimedBy != "p3" || !d.LapsedAt.Equal(now.Add(time.Minute)) {
			t.Errorf("a delivery claimed again: %+v", d)
		}
	}

	if first := expired[4]; first.Fence != 1 || !first.LapsedAt.IsZero() {
		t.Errorf("a delivery claimed for the first time: %+v", first)
	}
	// A claim that was given back has not lapsed.
	back := expired[0]
	back.ClaimedBy, back.ClaimedUntil, back.LapsedAt = "", time.Time{}, time.Time{}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.PutDeliveries(ctx, &back) })

	again := claimDeliveries(t, st, "p4", later, 10, 10)
	if len(again) != 1 || again[0].ID != back.ID || !again[0].LapsedAt.IsZero() || again[0].Fence != 3 {
		t.Errorf("after one was given back: %+v", again)
	}

	stale := got[1]
	stale.Attempts++

	expectError(
		t, st, fault.Conflict, "a result under a claim that was taken over",
		func(ctx context.Context, tx store.Tx) error {
			return tx.PutDeliveries(ctx, &stale)
		},
	)
}

// testClaimFairly gives one endpoint a long queue that is older than everybody else's.
func testClaimFairly(t *testing.T, st store.Store) {
	of := func(n int) string {
		if n < 60 {
			return "busy"
		}

		return fmt.Sprint("e", n%5)
	}
	putDeliveries(t, st, 70, of, func(n int) int { return n })
	got := claimDeliveries(t, st, "p", timeAt(100), 8, 3)

	count := map[string]int{}
	for _, d := range got {
		count[d.EndpointID]++
	}

	if len(got) != 8 || count["busy"] != 3 || len(count) != 6 {
		t.Errorf("a claim of 8, at most 3 per endpoint, took %v", count)
	}

	got = claimDeliveries(t, st, "p", timeAt(100), 100, 3)
	for _, d := range got {
		count[d.EndpointID]++
	}

	if count["busy"] != 6 || len(got) != 8 {
		t.Errorf("a second claim took %d, in all %v", len(got), count)
	}

	if n, err := st.PendingDeliveries(t.Context(), "busy"); err != nil || n != 60 {
		t.Errorf("PendingDeliveries: %d %v", n, err)
	}
}

// testClaimOnce lets many processes claim at once until nothing is left: each delivery goes to
// one of them.
func testClaimOnce(t *testing.T, st store.Store) {
	const total = 300
	putDeliveries(
		t, st, total, func(n int) string { return fmt.Sprint("e", n%7) },
		func(n int) int { return n % 10 },
	)
	claims := concurrently(func(n int) (mine []webhook.Delivery) {
		for empty := 0; empty < 3; {
			var got []webhook.Delivery

			err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) (err error) {
				got, err = tx.ClaimDeliveries(ctx, fmt.Sprint("p", n), timeAt(10), timeAt(11), 5, 2)
				return err
			})
			if err != nil {
				t.Error(err)
				return mine
			}

			if len(got) == 0 {
				empty++
			}

			mine = append(mine, got...)
		}

		return mine
	})
	by := map[string]string{}

	for n, mine := range claims {
		for _, d := range mine {
			if d.Fence != 1 {
				t.Errorf("%s was claimed %d times", d.ID, d.Fence)
			}

			if who, ok := by[d.ID]; ok {
				t.Errorf("%s was claimed by %s and %d", d.ID, who, n)
			}

			by[d.ID] = fmt.Sprint(n)
		}
	}
	// what others held locked when all looked
	for _, d := range claimDeliveries(t, st, "last", timeAt(10), total, total) {
		by[d.ID] = "last"
	}

	if len(by) != total {
		t.Errorf("%d of %d deliveries were claimed", len(by), total)
	}
}

// testByID reads what the worker needs for a batch: several records of any owner, inside the
// transaction that wrote them and outside.
func testByID(t *testing.T, st store.Store) {
	asked := []string{recordID(4), recordID(1), "none", recordID(4)}
	want := []string{recordID(1), recordID(4)}
	check := func(r store.Reader) {
		t.Helper()
		endpoints, err := r.EndpointsByID(t.Context(), asked)
		expectIDs(
			t, "EndpointsByID", endpoints, err, func(e webhook.Endpoint) string { return e.ID },
			want, true,
		)
		deliveries, err := r.DeliveriesByID(t.Context(), asked)
		expectIDs(t, "DeliveriesByID", deliveries, err, deliveryID, want, true)
		events, err := r.EventsByID(t.Context(), asked)
		expectIDs(t, "EventsByID", events, err, func(e event.Event) string { return e.ID }, want, true)

		for _, e := range events {
			if string(e.Envelope) != "envelope of "+e.ID {
				t.Errorf("event %s has the envelope %q", e.ID, e.Envelope)
			}
		}
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 6 {
			id, owner := recordID(n), owners[n%3]
			if err := tx.PutEndpoint(ctx, &webhook.Endpoint{ID: id, Owner: owner}); err != nil {
				return err
			}

			if err := tx.PutEvents(
				ctx, event.Event{ID: id, Owner: owner, Envelope: []byte("envelope of " + id)},
			); err != nil {
				return err
			}

			if err := tx.PutDeliveries(
				ctx, &webhook.Delivery{ID: id, Owner: owner, EventID: id, EndpointID: id},
			); err != nil {
				return err
			}
		}

		check(tx)

		return nil
	})
	check(st)
}

func testFailDeliveries(t *testing.T, st store.Store) {
	putDeliveries(t, st, 6, func(n int) string { return fmt.Sprint("e", n%2) }, func(int) int { return 0 })

	before, err := st.Delivery(t.Context(), owners[0], recordID(0))
	if err != nil {
		t.Fatal(err)
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.FailDeliveries(ctx, "e0") })

	for n := range 6 {
		d, err := st.Delivery(t.Context(), owners[0], recordID(n))

		failed := d.Status == webhook.DeliveryFailed && d.NextAttemptAt.IsZero()
		if err != nil || failed != (n%2 == 0) {
			t.Errorf("delivery %d: %+v %v", n, d, err)
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

func testPruneEvents(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 8 {
			if err := tx.PutEvents(
				ctx,
				event.Event{ID: fmt.Sprint("evt_", n), Owner: owners[0], CreatedAt: timeAt(n)},
			); err != nil {
				return err
			}
		}
		// Event 1 has yet to be delivered, event 2 was.
		return tx.PutDeliveries(ctx,
			&webhook.Delivery{ID: recordID(0), EventID: "evt_1", Status: webhook.DeliveryPending},
			&webhook.Delivery{ID: recordID(1), EventID: "evt_2", Status: webhook.DeliverySucceeded})
	})
	expectPruned(
		t, st, []int{2, 2, 0},
		func(ctx context.Context, tx store.Tx) (int, error) { return tx.PruneEvents(ctx, timeAt(5), 2) },
	)

	for n := range 8 {
		_, err := st.Event(t.Context(), owners[0], fmt.Sprint("evt_", n))
		if left := n == 1 || n >= 5; left != (err == nil) || err != nil && !errors.Is(err, fault.NotFound) {
			t.Errorf("event %d after the pruning: %v", n, err)
		}
	}
}

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

			if err := tx.PutEndpoint(
				ctx, &webhook.Endpoint{ID: recordID(n), Owner: owner, Status: status},
			); err != nil {
				return err
			}
		}

		return nil
	})
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		got, err := tx.EndpointsOf(ctx, owners[0])
		expectIDs(
			t, "EndpointsOf", got, err, func(e webhook.Endpoint) string { return e.ID },
			[]string{recordID(0), recordID(2)}, true,
		)

		return nil
	})
}
