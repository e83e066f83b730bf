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

	for _, kind := range recordKinds() {
		cases = append(cases, testCase{
			"Version/" + kind.name(),
			func(t *testing.T, st store.Store) { testVersion(t, st, kind) },
		})
	}

	run(t, factory, cases)
}

func testVersion(t *testing.T, st store.Store, kind recordKind) {
	record := kind.new(0, 10)
	update(t, st, putOf(kind, record))

	if !kind.unique() {
		update(t, st, putOf(kind, kind.new(0, 500)))
		return
	}

	expectError(
		t, st, fault.Duplicate, "a put of a new record whose key exists",
		putOf(kind, kind.new(0, 500)),
	)
	expectError(
		t, st, fault.Duplicate, "a second put of a new record in one transaction",
		func(ctx context.Context, tx store.Tx) error {
			return putOf(kind, kind.new(1, 500), kind.new(1, 900))(ctx, tx)
		},
	)

	if kind.version(record) != nil {
		testWrongVersion(t, st, kind, record)
		testStaleVersion(t, st, kind, record)
	}
}

// putOf returns a closure that puts records.
func putOf(kind recordKind, records ...any) closure {
	return func(ctx context.Context, tx store.Tx) error {
		for _, record := range records {
			if err := kind.put(ctx, tx, record); err != nil {
				return err
			}
		}

		return nil
	}
}

// testWrongVersion puts versions that were never stored. A put that fails leaves the caller's version
// as it was.
func testWrongVersion(t *testing.T, st store.Store, kind recordKind, record any) {
	t.Helper()

	for _, wrong := range []int64{2, 3, -1} {
		other := kind.renew(record, 0, 500)
		*kind.version(other) = wrong
		expectError(
			t, st, fault.Conflict, "a put under a version that is not the stored one", putOf(kind, other),
		)

		if version := *kind.version(other); version != wrong {
			t.Errorf("a put that failed leaves version %d in the caller's hands, want %d", version, wrong)
		}
	}

	none := kind.new(5, 500)
	*kind.version(none) = 1
	expectError(t, st, fault.Conflict, "a put of a later version of what does not exist", putOf(kind, none))
}

// testStaleVersion puts a record twice in one transaction, then a copy that was read before them.
func testStaleVersion(t *testing.T, st store.Store, kind recordKind, record any) {
	t.Helper()

	stale := kind.renew(record, 0, 700)

	update(t, st, putOf(kind, record, record))

	if version := *kind.version(record); version != 3 {
		t.Errorf("two more puts left version %d, want 3", version)
	}

	expectError(
		t, st, fault.Conflict, "a put of a record that was changed since it was read", putOf(kind, stale),
	)
	expectError(
		t, st, fault.Conflict, "a put that was overtaken in its own transaction",
		func(ctx context.Context, tx store.Tx) error {
			return putOf(kind, kind.renew(record, 0, 700), kind.renew(record, 0, 800))(ctx, tx)
		},
	)
	expectRead(t, st, kind, "after puts that failed", record)
}

// testUniqueTransfer puts payments of one transfer. Payments without a hash have no transfer.
func testUniqueTransfer(t *testing.T, st store.Store) {
	payment := invoice.Payment{ID: recordID(0), Network: "net", TxHash: "h", TxIndex: 1}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		return tx.PutPayments(ctx, &payment,
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
	payment.TxHash = ""

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.PutPayments(ctx, &payment); err != nil {
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
	key := idempotency.Key{Owner: event.Owner{AccountID: "acc"}, Key: "k"}
	claim := func(key idempotency.Key) func(ctx context.Context, tx store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error {
			record := idempotency.Record{Key: key, CreatedAt: epoch}
			return tx.ClaimIdempotencyKey(ctx, record, epoch.Add(-time.Hour), time.Second)
		}
	}

	update(t, st, claim(key))
	expectError(t, st, fault.Duplicate, "a second claim of a key", claim(key))

	live := key
	live.Owner.Livemode = true
	update(t, st, claim(live))

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		// A refused claim leaves the transaction usable: the stored answer is read next.
		if err := claim(key)(ctx, tx); !errors.Is(err, fault.Duplicate) {
			t.Errorf("a second claim of a key answered %v", err)
		}

		if _, ok, err := tx.IdempotencyRecord(ctx, key); err != nil || !ok {
			t.Errorf("the record after a refused claim: %v %v", ok, err)
		}

		return nil
	})
}
