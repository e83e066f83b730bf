package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// testPrunesOldest prunes less than there is: the oldest go first.
func testPrunesOldest(t *testing.T, st store.Store) {
	putPrunable(t, st)

	for what, prune := range prunes() {
		var pruned int

		update(t, st, func(ctx context.Context, tx store.Tx) (err error) {
			pruned, err = prune.run(tx, ctx, timeAt(100), 2)
			return err
		})

		left := prune.left(t, st)
		if want := []int{2, 3, 4}; pruned != 2 || !slices.Equal(left, want) {
			t.Errorf("%s of 2: %d went, %v are left, want %v", what, pruned, left, want)
		}
	}
}

// testPruneKeeps prunes up to a time: what was made at exactly that time stays.
func testPruneKeeps(t *testing.T, st store.Store) {
	putPrunable(t, st)

	for what, prune := range prunes() {
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			_, err := prune.run(tx, ctx, timeAt(3), 100)
			return err
		})

		if left, want := prune.left(t, st), []int{3, 4}; !slices.Equal(left, want) {
			t.Errorf("%s before the fourth leaves %v, want %v", what, left, want)
		}
	}
}

// prunable is one kind of record that is pruned.
type prunable struct {
	run  func(tx store.Tx, ctx context.Context, before time.Time, limit int) (int, error)
	left func(t *testing.T, st store.Store) []int
}

// putPrunable puts five of each prunable, made a minute after the other, newest first.
func putPrunable(t *testing.T, st store.Store) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := 4; n >= 0; n-- {
			claim := idempotency.Record{
				Key:       idempotency.Key{Owner: owners[0], Key: fmt.Sprint(n)},
				CreatedAt: timeAt(n),
			}
			delivery := webhook.Delivery{
				ID:        recordID(9 - n),
				Owner:     owners[0],
				Status:    webhook.DeliverySucceeded,
				CreatedAt: timeAt(n),
			}

			err := errors.Join(
				tx.ClaimIdempotencyKey(ctx, claim, time.Time{}, time.Second),
				tx.PutEvents(
					ctx,
					event.Event{ID: fmt.Sprint("evt_", 9-n), Owner: owners[0], CreatedAt: timeAt(n)},
				),
				tx.PutDeliveries(ctx, &delivery),
			)
			if err != nil {
				return err
			}
		}

		return nil
	})
}

func prunes() map[string]prunable {
	return map[string]prunable{
		"PruneIdempotencyKeys": {
			store.Tx.PruneIdempotencyKeys,
			leftOf(func(ctx context.Context, st store.Store, n int) (bool, error) {
				_, ok, err := st.IdempotencyRecord(ctx, idempotency.Key{Owner: owners[0], Key: fmt.Sprint(n)})
				return ok, err
			}),
		},
		"PruneEvents": {
			store.Tx.PruneEvents,
			leftOf(func(ctx context.Context, st store.Store, n int) (bool, error) {
				found, err := st.EventsByID(ctx, []string{fmt.Sprint("evt_", 9-n)})
				return len(found) == 1, err
			}),
		},
		"PruneDeliveries": {
			store.Tx.PruneDeliveries,
			leftOf(func(ctx context.Context, st store.Store, n int) (bool, error) {
				found, err := st.DeliveriesByID(ctx, []string{recordID(9 - n)})
				return len(found) == 1, err
			}),
		},
	}
}

// leftOf returns which of the five records are there, oldest first.
func leftOf(
	exists func(ctx context.Context, st store.Store, n int) (bool, error),
) func(*testing.T, store.Store) []int {
	return func(t *testing.T, st store.Store) (left []int) {
		t.Helper()

		for n := range 5 {
			found, err := exists(t.Context(), st, n)
			if err != nil {
				t.Fatal(err)
			}

			if found {
				left = append(left, n)
			}
		}

		return left
	}
}
