package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// testConcurrentClaim sends one request many times at once: it is carried out once, and the
// others are refused and read the answer.
func testConcurrentClaim(t *testing.T, st store.Store) {
	key := idempotency.Key{Owner: owners[0], Key: "once"}
	results := concurrently(func(n int) error { return st.Update(t.Context(), claimAndCreate(key, n)) })
	created := countSuccess(t, "a rival", results, fault.Duplicate)

	all, err := st.Invoices(t.Context(), invoice.Filter{Owner: owners[0], Limit: 100})
	got, _, recordErr := st.IdempotencyRecord(t.Context(), key)

	err = errors.Join(err, recordErr)
	if err != nil || created != 1 || len(all) != 1 || string(got.SealedBody) != all[0].ID {
		t.Errorf(
			"%d of %d requests were carried out, %d invoices made, the answer is %q (%v)",
			created, goroutines, len(all), got.SealedBody, err,
		)
	}
}

// claimAndCreate returns the closure of a request: it claims the key, makes an invoice and stores
// the answer. When the claim is refused, the answer has to be there.
func claimAndCreate(key idempotency.Key, n int) closure {
	return func(ctx context.Context, tx store.Tx) error {
		record := idempotency.Record{Key: key, CreatedAt: epoch}

		err := tx.ClaimIdempotencyKey(ctx, record, time.Time{}, 30*time.Second)
		if errors.Is(err, fault.Duplicate) {
			got, ok, readErr := tx.IdempotencyRecord(ctx, key)
			if readErr != nil || !ok || got.Status != 200 {
				return fmt.Errorf("a refused claim reads %+v %v %w", got, ok, readErr)
			}
		}

		if err != nil {
			return err
		}

		inv := invoice.Invoice{ID: recordID(n), Owner: owners[0]}
		if err := tx.PutInvoice(ctx, &inv); err != nil {
			return err
		}

		record.Status, record.SealedBody = 200, []byte(inv.ID)

		return tx.PutIdempotencyAnswer(ctx, record)
	}
}

// testFlushedClaim flushes a claim, where the store buffers some, while another transaction holds the key: what comes
// after the flush does not run.
func testFlushedClaim(t *testing.T, st store.Store) {
	key, flushes, entered := idempotency.Key{Owner: owners[0], Key: "flushed"}, false, 0

	request := func(then func()) func(ctx context.Context, tx store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error {
			var f store.Flusher
			if f, flushes = tx.(store.Flusher); !flushes {
				return errRefused
			}

			record := idempotency.Record{Key: key, CreatedAt: epoch}
			if err := tx.ClaimIdempotencyKey(ctx, record, time.Time{}, time.Millisecond); err != nil {
				return err
			}

			if err := f.Flush(ctx); err != nil {
				return err
			}

			entered++

			then()

			record.Status = 200

			return tx.PutIdempotencyAnswer(ctx, record)
		}
	}

	err := st.Update(t.Context(), request(func() {
		// A store with one writer refuses a transaction that cannot begin.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		if err := st.Update(ctx, request(func() {})); err == nil {
			t.Error("a rival flushed a claim of a key that another transaction holds")
		}
	}))
	if !flushes {
		t.Skip("the store's transactions are no store.Flusher")
	}

	if err != nil || entered != 1 {
		t.Errorf("%d transactions went on after their claims (%v)", entered, err)
	}
}

// testConcurrentStaleClaim claims a key, whose record is too old to count, from many goroutines: one
// of them gets it, and its record is not taken for the old one.
func testConcurrentStaleClaim(t *testing.T, st store.Store) {
	record := idempotency.Record{Key: idempotency.Key{Owner: owners[0], Key: "again"}, CreatedAt: timeAt(10)}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.ClaimIdempotencyKey(ctx, record, time.Time{}, time.Second); err != nil {
			return err
		}

		old := record
		old.Status, old.SealedBody = 200, []byte("old")

		return tx.PutIdempotencyAnswer(ctx, old)
	})
	claim := func(stale time.Time) func(ctx context.Context, tx store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error {
			fresh := idempotency.Record{Key: record.Key, KeyID: "fresh", CreatedAt: timeAt(100)}
			if err := tx.ClaimIdempotencyKey(ctx, fresh, stale, 30*time.Second); err != nil {
				return err
			}

			got, ok, err := tx.IdempotencyRecord(ctx, record.Key)

			isFresh := ok && got.Status == 0 && len(got.SealedBody) == 0 && got.KeyID == "fresh"
			if err != nil || !isFresh {
				t.Errorf("what was claimed anew is %+v %v (%v)", got, ok, err)
			}

			fresh.Status = 201

			return tx.PutIdempotencyAnswer(ctx, fresh)
		}
	}

	expectError(t, st, fault.Duplicate, "a claim of a key whose record counts", claim(timeAt(9)))

	results := concurrently(func(int) error { return st.Update(t.Context(), claim(timeAt(10))) })
	claimed := countSuccess(t, "a rival", results, fault.Duplicate)

	got, _, err := st.IdempotencyRecord(t.Context(), record.Key)
	if err != nil || claimed != 1 || got.Status != 201 {
		t.Errorf(
			"%d of %d claims of a stale key succeeded, the record is %+v (%v)",
			claimed, goroutines, got, err,
		)
	}
}

// testAnswer stores an answer, which only its own key reads.
func testAnswer(t *testing.T, st store.Store) {
	record := idempotency.Record{
		Key:         idempotency.Key{Owner: owners[0], Key: "k"},
		KeyID:       "key",
		Scopes:      []string{"a", "b"},
		Fingerprint: [32]byte{1, 2},
		CreatedAt:   epoch,
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.ClaimIdempotencyKey(ctx, record, time.Time{}, time.Second); err != nil {
			return err
		}

		if got, ok, err := tx.IdempotencyRecord(ctx, record.Key); err != nil || !ok || got.Status != 0 {
			t.Errorf("the claim in its transaction: %+v %v %v", got, ok, err)
		}

		answer := record

		answer.Status, answer.SealedBody = 422, []byte{0, 1, 2}
		if err := tx.PutIdempotencyAnswer(ctx, answer); err != nil {
			return err
		}

		got, _, err := tx.IdempotencyRecord(ctx, record.Key)
		expectEqual(t, "in its transaction", answer, got)

		return err
	})

	for _, other := range []idempotency.Key{
		{Owner: owners[1], Key: "k"},
		{Owner: owners[2], Key: "k"},
		{Owner: owners[0], Key: "K"},
	} {
		if _, ok, err := st.IdempotencyRecord(t.Context(), other); err != nil || ok {
			t.Errorf("the answer of %+v is found as %+v (%v)", record.Key, other, err)
		}
	}

	err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		none := record
		none.Key.Key = "none"

		return tx.PutIdempotencyAnswer(ctx, none)
	})
	if err == nil {
		t.Error("an answer was stored for a key that nobody claimed")
	}
}

// testPruneClaims prunes claims made before a time, in batches of 4.
func testPruneClaims(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 10 {
			record := idempotency.Record{
				Key:       idempotency.Key{Owner: owners[n%3], Key: fmt.Sprint(n)},
				CreatedAt: timeAt(n),
			}
			if err := tx.ClaimIdempotencyKey(ctx, record, time.Time{}, time.Second); err != nil {
				return err
			}
		}

		return nil
	})
	expectPruned(t, st, []int{4, 3, 0}, func(ctx context.Context, tx store.Tx) (int, error) {
		return tx.PruneIdempotencyKeys(ctx, timeAt(7), 4)
	})

	for n := range 10 {
		key := idempotency.Key{Owner: owners[n%3], Key: fmt.Sprint(n)}

		_, ok, err := st.IdempotencyRecord(t.Context(), key)
		if err != nil || ok != (n >= 7) {
			t.Errorf("claim %d after the pruning: %v %v", n, ok, err)
		}
	}
}

// expectPruned prunes in batches and checks how many each removed.
func expectPruned(
	t *testing.T,
	st store.Store,
	want []int,
	prune func(ctx context.Context, tx store.Tx) (int, error),
) {
	t.Helper()

	for _, n := range want {
		var pruned int

		update(t, st, func(ctx context.Context, tx store.Tx) (err error) {
			pruned, err = prune(ctx, tx)
			return err
		})

		if pruned != n {
			t.Errorf("a batch removed %d, want %d", pruned, n)
		}
	}
}
