package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// Contract tests the rules that hold for all methods alike: what is absent, how a closure runs again, what a
// closed store and a nested Update answer, and what is due at exactly its time.
func Contract(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, []testCase{
		{"Contract/Absent", testAbsent},
		{"Contract/AbsentCarries", testAbsentCarries},
		{"Contract/AbsentResidues", testAbsentResidues},
		{"Contract/OwnConflict", testOwnConflict},
		{"Contract/OtherErrors", testOtherErrors},
		{"Contract/NestedUpdate", testNestedUpdate},
		{"Contract/Closed", testClosed},
		{"Contract/LockAccount", testLockAccount},
		{"Contract/Deadline", testDeadline},
		{"Contract/DueExactly", testDueExactly},
		{"Contract/PrunesOldest", testPrunesOldest},
		{"Contract/PruneKeeps", testPruneKeeps},
		{"Contract/Deletes", testDeletes},
	})
}

// testOwnConflict lets a closure itself find that it has to run again. Nothing of its first runs remains.
func testOwnConflict(t *testing.T, st store.Store) {
	runs := 0
	inv := invoice.Invoice{ID: recordID(0)}

	err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		runs++

		if err := tx.PutInvoice(ctx, &inv); err != nil {
			return err
		}

		if runs < 3 {
			return fmt.Errorf("wrapped: %w", fault.New(fault.Conflict, "changed", "somebody was faster"))
		}

		return nil
	})
	if err != nil || runs != 3 || inv.Version != 1 {
		t.Errorf("after %d runs, with version %d: %v; want 3 runs and version 1", runs, inv.Version, err)
	}
}

// testOtherErrors returns other errors: the closure does not run again.
func testOtherErrors(t *testing.T, st store.Store) {
	for _, kind := range []error{fault.Duplicate, fault.NotFound, fault.State, fault.LeaseLost, errRefused} {
		runs := 0

		err := st.Update(t.Context(), func(context.Context, store.Tx) error {
			runs++
			return fmt.Errorf("wrapped: %w", kind)
		})
		if !errors.Is(err, kind) || runs != 1 {
			t.Errorf("a closure that ended in %v ran %d times and was answered %v", kind, runs, err)
		}
	}
}

// testNestedUpdate starts an Update inside another one's closure: it is refused, and the outer one goes on.
func testNestedUpdate(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()

		err := st.Update(limited, func(context.Context, store.Tx) error {
			t.Error("the closure of a nested Update runs")
			return nil
		})
		if !errors.Is(err, fault.State) || fault.Code(err) != "update_nested" {
			t.Errorf("a nested Update answered %v, want fault.State with code update_nested", err)
		}

		return tx.PutInvoice(ctx, &invoice.Invoice{ID: recordID(0)})
	})

	if _, err := st.InvoiceByID(t.Context(), recordID(0)); err != nil {
		t.Errorf("the outer Update was lost: %v", err)
	}
}

// testClosed uses a store after Close.
func testClosed(t *testing.T, st store.Store) {
	for range 2 {
		if err := st.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}

	if _, err := st.InvoiceByID(t.Context(), recordID(0)); !errors.Is(err, fault.Unavailable) {
		t.Errorf("a read of a closed store answered %v, want %v", err, fault.Unavailable)
	}

	if _, err := st.Invoices(
		t.Context(),
		invoice.Filter{Owner: owners[0]},
	); !errors.Is(
		err,
		fault.Unavailable,
	) {
		t.Errorf("a list of a closed store answered %v, want %v", err, fault.Unavailable)
	}

	err := st.Update(t.Context(), func(context.Context, store.Tx) error {
		t.Error("a closed store runs a closure")
		return nil
	})
	if !errors.Is(err, fault.Unavailable) {
		t.Errorf("an Update of a closed store answered %v, want %v", err, fault.Unavailable)
	}
}

// testLockAccount locks an account twice, with writes to it and to others: the lock changes nothing.
func testLockAccount(t *testing.T, st store.Store) {
	acct := account.Account{ID: "one", Index: 1}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		return errors.Join(
			tx.PutAccount(ctx, &acct),
			tx.PutAccount(ctx, &account.Account{ID: "two", Index: 2}),
		)
	})
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := errors.Join(tx.LockAccount(ctx, "one"), tx.LockAccount(ctx, "one")); err != nil {
			return err
		}

		other, err := tx.Account(ctx, "two")
		if err != nil {
			return err
		}

		acct.Settings.Name = "locked"

		return errors.Join(tx.PutAccount(ctx, &acct), tx.PutAccount(ctx, &other))
	})

	got, err := st.Account(t.Context(), "one")
	if err != nil || got.Version != 2 || got.Settings.Name != "locked" {
		t.Errorf("an account that was locked: %+v (%v)", got, err)
	}
}

// testDeadline claims deliveries at exactly the end of another claim, and a microsecond before.
func testDeadline(t *testing.T, st store.Store) {
	putDeliveries(t, st, 2, func(n int) string { return fmt.Sprint("e", n) }, func(int) int { return 0 })

	if first := claimDeliveries(t, st, "p1", epoch, 10, 10); len(first) != 2 {
		t.Fatalf("due exactly now are %d deliveries, want 2", len(first))
	}

	end := epoch.Add(time.Minute)
	if early := claimDeliveries(t, st, "p2", end.Add(-time.Millisecond), 10, 10); len(early) != 0 {
		t.Errorf("%d claims were taken over before their end", len(early))
	}

	if next := claimDeliveries(t, st, "p2", end, 10, 10); len(next) != 2 {
		t.Errorf("%d of 2 claims were taken over at exactly their end", len(next))
	}
}

// testDueExactly reads what is due at exactly a time.
func testDueExactly(t *testing.T, st store.Store) {
	putWork(t, st)

	now := timeAt(3)
	for what, list := range workLists(st, now) {
		ids, err := list(t.Context(), 100)
		if err != nil || !slices.Contains(ids, recordID(3)) || slices.Contains(ids, recordID(4)) {
			t.Errorf("%s at exactly the time of the fourth: %v (%v)", what, ids, err)
		}
	}
}

// testDeletes deletes what does not exist, and makes anew what was deleted.
func testDeletes(t *testing.T, st store.Store) {
	coin := wallet.Coin{Network: "net"}
	coin.Outpoint = chain.Outpoint{TxHash: "h"}
	coin.Owner.Address = "address"

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		return errors.Join(
			tx.DeleteCoin(ctx, "net", coin.Outpoint), tx.DeleteOutgoing(ctx, "net", "key"),
			tx.DeleteRange(ctx, "none"), tx.DeleteRetry(ctx, "none"), tx.DeleteEndpoint(ctx, "none"),
			tx.DeleteDustTransfer(ctx, "net", invoice.TransferKey{TxHash: "h"}),
		)
	})

	for range 2 {
		again := coin

		update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.PutCoin(ctx, &again) })
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			return tx.DeleteCoin(ctx, "net", coin.Outpoint)
		})
	}

	if left, err := st.Coins(t.Context(), "net", "address"); err != nil || len(left) != 0 {
		t.Errorf("deleted coins are listed: %+v (%v)", left, err)
	}
}
