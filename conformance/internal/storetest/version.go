package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// Versions tests which puts conflict, which are duplicates, and what is unique beside the key.
func Versions(t *testing.T, factory Factory) {
	t.Helper()

	cases := []testCase{
		{"Unique/Transfer", testUniqueTransfer},
		{"Unique/KeyHash", testUniqueKeyHash},
		{"Unique/AccountIndex", testUniqueIndex},
		{"Unique/AttemptHash", testUniqueAttempt},
		{"Unique/IdempotencyKey", testUniqueClaim},
	}

	for _, k := range recordKinds() {
		cases = append(cases, testCase{
			"Version/" + k.name(),
			func(t *testing.T, st store.Store) { testVersion(t, st, k) },
		})
	}

	run(t, factory, cases)
}

func testVersion(t *testing.T, st store.Store, k recordKind) {
	record := k.new(0, 10)
	update(t, st, putOf(k, record))

	if !k.unique() {
		update(t, st, putOf(k, k.new(0, 500)))
		return
	}

	expectError(t, st, fault.Duplicate, "a put of a new record whose key exists", putOf(k, k.new(0, 500)))
	expectError(
		t, st, fault.Duplicate, "a second put of a new record in one transaction",
		func(ctx context.Context, tx store.Tx) error {
			return putOf(k, k.new(1, 500), k.new(1, 900))(ctx, tx)
		},
	)

	if k.version(record) != nil {
		testWrongVersion(t, st, k, record)
		testStaleVersion(t, st, k, record)
	}
}

// putOf returns a closure that puts records.
func putOf(k recordKind, records ...any) closure {
	return func(ctx context.Context, tx store.Tx) error {
		for _, record := range records {
			if err := k.put(ctx, tx, record); err != nil {
				return err
			}
		}

		return nil
	}
}

// testWrongVersion puts versions that were never stored. A put that fails leaves the caller's version
// as it was.
func testWrongVersion(t *testing.T, st store.Store, k recordKind, record any) {
	t.Helper()

	for _, wrong := range []int64{2, 3, -1} {
		other := k.renew(record, 0, 500)
		*k.version(other) = wrong
		expectError(
			t, st, fault.Conflict, "a put under a version that is not the stored one", putOf(k, other),
		)

		if version := *k.version(other); version != wrong {
			t.Errorf("a put that failed leaves version %d in the caller's hands, want %d", version, wrong)
		}
	}

	none := k.new(5, 500)
	*k.version(none) = 1
	expectError(t, st, fault.Conflict, "a put of a later version of what does not exist", putOf(k, none))
}

// testStaleVersion puts a record twice in one transaction, then a copy that was read before them.
func testStaleVersion(t *testing.T, st store.Store, k recordKind, record any) {
	t.Helper()

	stale := k.renew(record, 0, 700)

	update(t, st, putOf(k, record, record))

	if version := *k.version(record); version != 3 {
		t.Errorf("two more puts left version %d, want 3", version)
	}

	expectError(
		t, st, fault.Conflict, "a put of a record that was changed since it was read", putOf(k, stale),
	)
	expectError(
		t, st, fault.Conflict, "a put that was overtaken in its own transaction",
		func(ctx context.Context, tx store.Tx) error {
			return putOf(k, k.renew(record, 0, 700), k.renew(record, 0, 800))(ctx, tx)
		},
	)
	expectRead(t, st, k, "after puts that failed", record)
}

// testUniqueTransfer puts payments of one transfer. Payments without a hash have no transfer.
func testUniqueTransfer(t *testing.T, st store.Store) {
	p := invoice.Payment{ID: recordID(0), Network: "net", TxHash: "h", TxIndex: 1}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		return tx.PutPayments(ctx, &p,
			&invoice.Payment{ID: recordID(1), Network: "net", TxHash: "h", TxIndex: 2},
			&invoice.Payment{ID: recordID(2), Network: "other", TxHash: "h", TxIndex: 1},
			&invoice.Payment{ID: recordID(3), Network: "net"},
			&invoice.Payment{ID: recordID(4), Network: "net"},
		)
	})
	expectError(
		t, st, fault.Duplicate, "a second payment of one transfer",
		func(ctx context.Context, tx store.Tx) error {
			return tx.PutPayments(
				ctx, &invoice.Payment{ID: recordID(5), Network: "net", TxHash: "h", TxIndex: 1},
			)
		},
	)
	expectError(
		t, st, fault.Duplicate, "two new payments of one transfer",
		func(ctx context.Context, tx store.Tx) error {
			return tx.PutPayments(
				ctx, &invoice.Payment{ID: recordID(6), Network: "net", TxHash: "new"},
				&invoice.Payment{ID: recordID(7), Network: "net", TxHash: "new"},
			)
		},
	)

	// The transfer may pass from one payment to another.
	p.TxHash = ""

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.PutPayments(ctx, &p); err != nil {
			return err
		}

		return tx.PutPayments(ctx, &invoice.Payment{ID: recordID(8), Network: "net", TxHash: "h", TxIndex: 1})
	})
}

// testUniqueKeyHash puts two keys of one hash.
func testUniqueKeyHash(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.PutAccount(ctx, &account.Account{ID: "acc"}); err != nil {
			return err
		}

		key := account.Key{ID: recordID(0), Owner: event.Owner{AccountID: "acc"}, Hash: [32]byte{1}}

		return tx.PutKey(ctx, &key)
	})
	expectError(
		t, st, fault.Duplicate, "a second key of one hash",
		func(ctx context.Context, tx store.Tx) error {
			return tx.PutKey(
				ctx,
				&account.Key{ID: recordID(1), Owner: event.Owner{AccountID: "acc"}, Hash: [32]byte{1}},
			)
		},
	)

	key, of, err := st.KeyByHash(t.Context(), [32]byte{1})

	found := key.ID == recordID(0) && key.Version == 1 && of.ID == "acc" && of.Version == 1
	if err != nil || !found {
		t.Errorf("KeyByHash: %+v %+v %v", key, of, err)
	}

	if _, _, err := st.KeyByHash(t.Context(), [32]byte{2}); !errors.Is(err, fault.NotFound) {
		t.Errorf("KeyByHash of an unknown hash answered %v", err)
	}
}

// testUniqueIndex puts two accounts of one index.
func testUniqueIndex(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		return tx.PutAccount(ctx, &account.Account{ID: "a", Index: 3})
	})

	expectError(
		t, st, fault.Duplicate, "a second account of one index",
		func(ctx context.Context, tx store.Tx) error {
			return tx.PutAccount(ctx, &account.Account{ID: "b", Index: 3})
		},
	)
}

// testUniqueAttempt puts one hash twice on a network, and on another one.
func testUniqueAttempt(t *testing.T, st store.Store) {
	put := func(network, hash string) func(ctx context.Context, tx store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error {
			return tx.PutAttemptHash(ctx, network, hash, "tx", wallet.Payout)
		}
	}

	update(t, st, put("net", "h"))
	update(t, st, put("other", "h"))
	expectError(t, st, fault.Duplicate, "a second attempt of one hash", put("net", "h"))

	got, err := st.OwnTransactions(t.Context(), "net", []string{"h", "x", "h"})
	if err != nil || len(got) != 1 || got["h"] != wallet.Payout {
		t.Errorf("OwnTransactions: %v %v", got, err)
	}
}

// testUniqueClaim claims a key twice in a mode, and in the other one.
func testUniqueClaim(t *testing.T, st store.Store) {
	k := idempotency.Key{Owner: event.Owner{AccountID: "acc"}, Key: "k"}
	claim := func(k idempotency.Key) func(ctx context.Context, tx store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error {
			record := idempotency.Record{Key: k, CreatedAt: epoch}
			return tx.ClaimIdempotencyKey(ctx, record, epoch.Add(-time.Hour), time.Second)
		}
	}

	update(t, st, claim(k))
	expectError(t, st, fault.Duplicate, "a second claim of a key", claim(k))

	live := k
	live.Owner.Livemode = true
	update(t, st, claim(live))

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		// A refused claim leaves the transaction usable: the stored answer is read next.
		if err := claim(k)(ctx, tx); !errors.Is(err, fault.Duplicate) {
			t.Errorf("a second claim of a key answered %v", err)
		}

		if _, ok, err := tx.IdempotencyRecord(ctx, k); err != nil || !ok {
			t.Errorf("the record after a refused claim: %v %v", ok, err)
		}

		return nil
	})
}
