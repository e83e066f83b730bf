package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
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

// testAbsent reads rows that nobody stored: ok is false, the record zero, and there is no error.
func testAbsent(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for what, read := range map[string]func() (any, any, bool, error){
			"Carry": func() (any, any, bool, error) {
				got, ok, err := tx.Carry(ctx, owners[0], "net")
				return got, settlement.CarriedFee{}, ok, err
			},
			"Residue": func() (any, any, bool, error) {
				got, ok, err := tx.Residue(ctx, "net", "address")
				return got, settlement.Residue{}, ok, err
			},
			"BalanceForUpdate": func() (any, any, bool, error) {
				got, ok, err := tx.BalanceForUpdate(ctx, "net", "address", "asset")
				return got.Reservations == nil && got.Version == 0 && got.Network == "", true, ok, err
			},
			"Balance": func() (any, any, bool, error) {
				got, ok, err := tx.Balance(ctx, "net", "address", "asset")
				return got.Reservations == nil && got.Version == 0 && got.Network == "", true, ok, err
			},
			"Wallet": func() (any, any, bool, error) {
				got, ok, err := tx.Wallet(ctx, "net", "address")
				return got.Network == "" && got.Version == 0, true, ok, err
			},
			"Cursor": func() (any, any, bool, error) {
				got, ok, err := tx.Cursor(ctx, "net")
				return got.Network == "" && got.Version == 0, true, ok, err
			},
			"Lease": func() (any, any, bool, error) {
				got, ok, err := tx.Lease(ctx, "name")
				return got.Name == "" && got.Fence == 0, true, ok, err
			},
			"IdempotencyRecord": func() (any, any, bool, error) {
				got, ok, err := tx.IdempotencyRecord(ctx, idempotency.Key{Owner: owners[0], Key: "k"})
				return got.KeyID == "" && got.Status == 0, true, ok, err
			},
		} {
			if got, want, ok, err := read(); err != nil || ok || got != want {
				t.Errorf("%s of what is absent: %+v %t (%v)", what, got, ok, err)
			}
		}

		return nil
	})
}

// testAbsentCarries makes the carried fees of several owners on several networks.
func testAbsentCarries(t *testing.T, st store.Store) {
	for n, owner := range owners {
		for _, network := range []string{"a", "b"} {
			update(t, st, func(ctx context.Context, tx store.Tx) error {
				_, ok, err := tx.Carry(ctx, owner, network)
				if err != nil || ok {
					t.Errorf("the carry of %v on %s before it was put: %t (%v)", owner, network, ok, err)
				}

				fee := settlement.CarriedFee{
					Owner:   owner,
					Network: network,
					Amount:  chain.Units(uint64(n + 1)),
				}

				return tx.PutCarry(ctx, &fee)
			})
		}
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n, owner := range owners {
			got, ok, err := tx.Carry(ctx, owner, "b")
			if err != nil || !ok || got.Owner != owner || got.Amount != chain.Units(uint64(n+1)) ||
				got.Version != 1 {
				t.Errorf("the carry of %v: %+v %t (%v)", owner, got, ok, err)
			}
		}

		return nil
	})
}

// testAbsentResidues makes the residues of several addresses.
func testAbsentResidues(t *testing.T, st store.Store) {
	for n, at := range []chain.Address{"one", "two"} {
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			_, ok, err := tx.Residue(ctx, "net", at)
			if err != nil || ok {
				t.Errorf("the residue at %s before it was put: %t (%v)", at, ok, err)
			}

			residue := settlement.Residue{Network: "net", Address: at, Owed: chain.Units(uint64(n + 1))}

			return tx.PutResidue(ctx, &residue)
		})
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		got, ok, err := tx.Residue(ctx, "net", "two")
		if err != nil || !ok || got.Address != "two" || got.Owed != chain.Units(2) {
			t.Errorf("the residue at two: %+v %t (%v)", got, ok, err)
		}

		return nil
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
