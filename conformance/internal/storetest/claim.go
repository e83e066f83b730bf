package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// claimDeliveries claims deliveries for a minute, in a transaction of its own.
func claimDeliveries(
	t *testing.T,
	st store.Store,
	process string,
	now time.Time,
	limit, perEndpoint int,
) (claimed []webhook.Delivery) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx store.Tx) (err error) {
		claimed, err = tx.ClaimDeliveries(ctx, webhook.Claim{
			By:          process,
			Now:         now,
			Until:       now.Add(time.Minute),
			Limit:       limit,
			PerEndpoint: perEndpoint,
		})

		return err
	})

	return claimed
}

// claimAmongMany claims up to five deliveries, two of an endpoint, as one of many processes.
func claimAmongMany(t *testing.T, st store.Store, process string) (claimed []webhook.Delivery, err error) {
	t.Helper()

	err = updateAmongMany(t, st, func(ctx context.Context, tx store.Tx) (err error) {
		claimed, err = tx.ClaimDeliveries(ctx, webhook.Claim{
			By:          process,
			Now:         timeAt(10),
			Until:       timeAt(11),
			Limit:       5,
			PerEndpoint: 2,
		})

		return err
	})

	return claimed, err
}

// testClaim follows deliveries through claims that end with a result, lapse, or are given back.
func testClaim(t *testing.T, st store.Store) {
	// Due in the reverse order of ids.
	endpoint := func(n int) string { return fmt.Sprint("e", n) }
	putDeliveries(t, st, 10, endpoint, func(n int) int { return 10 - n })

	now := timeAt(5)
	first := claimDeliveries(t, st, "p1", now, 3, 10)
	expectIDs(
		t, "the first claim", first, nil, deliveryID,
		[]string{recordID(9), recordID(8), recordID(7)}, false,
	)
	expectClaimed(t, st, "p1", now, first)

	second := claimDeliveries(t, st, "p2", now, 10, 10)
	expectIDs(t, "the second claim", second, nil, deliveryID, []string{recordID(6), recordID(5)}, false)

	if third := claimDeliveries(t, st, "p2", now.Add(59*time.Second), 10, 10); len(third) != 0 {
		t.Errorf("deliveries are claimed twice: %v", idsOf(third, deliveryID))
	}

	// A result is stored from the record that was claimed; then it is due later, or never.
	done := second[0]
	done.Status, done.NextAttemptAt, done.ClaimedUntil = webhook.DeliverySucceeded, time.Time{}, time.Time{}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.PutDeliveries(ctx, &done) })

	testLapsedClaims(t, st, now)

	stale := second[1]
	stale.Attempts++

	expectError(
		t, st, fault.Conflict, "a result under a claim that was taken over",
		func(ctx context.Context, tx store.Tx) error { return tx.PutDeliveries(ctx, &stale) },
	)
}

// testClaimFairly gives one endpoint a long queue that is older than everybody else's.
func testClaimFairly(t *testing.T, st store.Store) {
	endpoint := func(n int) string {
		if n < 60 {
			return "busy"
		}

		return fmt.Sprint("e", n%5)
	}
	putDeliveries(t, st, 70, endpoint, func(n int) int { return n })

	got := claimDeliveries(t, st, "p", timeAt(100), 8, 3)

	count := map[string]int{}
	for _, delivery := range got {
		count[delivery.EndpointID]++
	}

	if len(got) != 8 || count["busy"] != 3 || len(count) != 6 {
		t.Errorf("a claim of 8, at most 3 per endpoint, took %v", count)
	}

	got = claimDeliveries(t, st, "p", timeAt(100), 100, 3)
	for _, delivery := range got {
		count[delivery.EndpointID]++
	}

	if count["busy"] != 6 || len(got) != 8 {
		t.Errorf("a second claim took %d, in all %v", len(got), count)
	}

	if n, err := st.PendingDeliveries(t.Context(), "busy"); err != nil || n != 60 {
		t.Errorf("PendingDeliveries: %d %v", n, err)
	}
}

// testClaimExcept leaves out two endpoints that wait longest, with more due than the limit.
func testClaimExcept(t *testing.T, st store.Store) {
	endpoint := func(n int) string { return fmt.Sprint("e", n/20) }
	putDeliveries(t, st, 60, endpoint, func(n int) int { return n })

	var claimed []webhook.Delivery

	update(t, st, func(ctx context.Context, tx store.Tx) (err error) {
		claimed, err = tx.ClaimDeliveries(ctx, webhook.Claim{
			By:          "p",
			Now:         timeAt(100),
			Until:       timeAt(160),
			Limit:       8,
			PerEndpoint: 5,
			Except:      []string{"e1", "nobody's", "e0"},
		})

		return err
	})

	if len(claimed) != 5 {
		t.Errorf("%d are claimed, want 5", len(claimed))
	}

	for _, d := range claimed {
		if d.EndpointID != "e2" {
			t.Errorf("%s of %s is claimed", d.ID, d.EndpointID)
		}
	}
}

// testClaimLive claims those of live mode, while those of test mode wait longer.
func testClaimLive(t *testing.T, st store.Store) {
	test, live := owners[0], owners[0]
	test.Livemode, live.Livemode = false, true

	for n, owner := range []event.Owner{test, live} {
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			e := webhook.Endpoint{ID: fmt.Sprint("e", n), Owner: owner}
			if err := tx.PutEndpoint(ctx, &e); err != nil {
				return err
			}

			d := webhook.Delivery{
				ID:            recordID(n),
				Owner:         owner,
				EndpointID:    e.ID,
				EventID:       fmt.Sprint("evt_", n),
				Status:        webhook.DeliveryPending,
				NextAttemptAt: timeAt(n),
			}

			return tx.PutDeliveries(ctx, &d)
		})
	}

	for _, step := range []struct {
		live bool
		want string
	}{{true, recordID(1)}, {false, recordID(0)}} {
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			claimed, err := tx.ClaimDeliveries(ctx, webhook.Claim{
				By:    "p",
				Now:   timeAt(100),
				Until: timeAt(160),
				Live:  step.live,
			})
			if len(claimed) != 1 || claimed[0].ID != step.want {
				t.Errorf("live %v: %+v are claimed", step.live, claimed)
			}

			return err
		})
	}
}

// testClaimOnce lets many processes claim at once until nothing is left: each delivery goes to
// one of them.
func testClaimOnce(t *testing.T, st store.Store) {
	const total = 300

	endpoint := func(n int) string { return fmt.Sprint("e", n%7) }
	putDeliveries(t, st, total, endpoint, func(n int) int { return n % 10 })

	claims := concurrently(func(n int) (mine []webhook.Delivery) {
		for empty := 0; empty < 3; {
			got, err := claimAmongMany(t, st, fmt.Sprint("p", n))
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

	claimedBy := map[string]string{}

	for n, mine := range claims {
		for _, delivery := range mine {
			if delivery.Fence != 1 {
				t.Errorf("%s was claimed %d times", delivery.ID, delivery.Fence)
			}

			if process, ok := claimedBy[delivery.ID]; ok {
				t.Errorf("%s was claimed by %s and %d", delivery.ID, process, n)
			}

			claimedBy[delivery.ID] = fmt.Sprint(n)
		}
	}

	// What others had locked during the last claims of all.
	for _, delivery := range claimDeliveries(t, st, "last", timeAt(10), total, total) {
		claimedBy[delivery.ID] = "last"
	}

	if len(claimedBy) != total {
		t.Errorf("%d of %d deliveries were claimed", len(claimedBy), total)
	}
}

// testClaimAfterResult lets processes claim at once and store failed attempts at once: what became due later, or
// ended, since another process looked for what is due is not claimed by it.
func testClaimAfterResult(t *testing.T, st store.Store) {
	const total = 300

	putDeliveries(
		t, st, total, func(n int) string { return fmt.Sprint("e", n%7) }, func(n int) int { return n % 10 },
	)

	concurrently(func(n int) (claimed int) {
		for empty := 0; empty < 3; {
			got, err := claimAmongMany(t, st, fmt.Sprint("p", n))
			if err == nil {
				err = updateAmongMany(t, st, func(ctx context.Context, tx store.Tx) error {
					return putResults(ctx, tx, got)
				})
			}

			if err != nil {
				t.Error(err)
				return claimed
			}

			if claimed += len(got); len(got) == 0 {
				empty++
			}
		}

		return claimed
	})

	for n := range total {
		d, err := st.Delivery(t.Context(), owners[0], recordID(n))
		if err != nil {
			t.Fatal(err)
		}

		if d.Fence > 1 {
			t.Errorf("%s was claimed %d times: it was due later, or over, after the first", d.ID, d.Fence)
		}
	}
}
