package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store"
)

// A running engine forgets what it no longer has to remember: answers after a day, events after
// their own time, and more of them than one batch holds.
func TestRunPrunes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, sim.New(sim.Config{}))
		cfg.KeepEvents = 36 * time.Hour

		engine, err := payments.New(cfg)
		if err != nil {
			t.Fatal(err)
		}

		const many = 1200

		owner := event.Owner{AccountID: "acc"}
		key := func(n int) idempotency.Key { return idempotency.Key{Owner: owner, Key: fmt.Sprint(n)} }
		began := time.Now()

		err = cfg.Store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			for n := range many {
				r := idempotency.Record{Key: key(n), Status: 200, CreatedAt: began}
				if n == 0 { // a younger one
					r.CreatedAt = began.Add(2 * time.Hour)
				}

				if err := tx.ClaimIdempotencyKey(ctx, r, time.Time{}, time.Second); err != nil {
					return err
				}

				if err := tx.PutEvents(
					ctx,
					event.Event{
						ID:        fmt.Sprint("evt_", n),
						Owner:     owner,
						Type:      event.InvoiceCreated,
						CreatedAt: began,
					},
				); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		ctx, stop := context.WithCancel(t.Context())

		done := make(chan error, 1)
		go func() { done <- engine.Run(ctx) }()

		left := func() (keys, events int) {
			t.Helper()

			for n := range many {
				_, ok, err := cfg.Store.IdempotencyRecord(t.Context(), key(n))
				if err != nil {
					t.Fatal(err)
				}

				if ok {
					keys++
				}
			}

			page, err := cfg.Store.Events(t.Context(), event.Filter{Owner: owner, Limit: 2 * many})
			if err != nil {
				t.Fatal(err)
			}

			return keys, len(page)
		}
		for _, want := range []struct {
			after        time.Duration
			keys, events int
		}{
			{requestkey.TTL - time.Minute, many, many},
			{requestkey.TTL + 2*time.Minute, 1, many},
			{requestkey.TTL + 2*time.Hour + 2*time.Minute, 0, many},
			{cfg.KeepEvents + 2*time.Minute, 0, 0},
		} {
			time.Sleep(time.Until(began.Add(want.after)))
			synctest.Wait()

			if keys, events := left(); keys != want.keys || events != want.events {
				t.Errorf(
					"after %s there are %d idempotency keys and %d events, want %d and %d",
					want.after, keys, events, want.keys, want.events,
				)
			}
		}

		stop()

		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
