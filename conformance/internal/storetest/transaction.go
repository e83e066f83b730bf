package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// Transactions tests what is stored and seen. Nothing remains of a closure that fails, its reads see
// its own writes, and reads on the store see only what was committed, without waiting.
func Transactions(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, []testCase{
		{"Transaction/Error", testError},
		{"Transaction/Panic", testPanic},
		{"Transaction/Broken", testBroken},
		{"Transaction/Canceled", testCanceled},
		{"Transaction/CanceledBefore", testCanceledBefore},
		{"Transaction/FaultAtEveryWrite", testFaults},
		{"Transaction/ReadsOutside", testReadsOutside},
		{"Transaction/ReadsOwnWrites", testReadsOwnWrites},
		{"Transaction/ReadsOwnDeletes", testReadsOwnDeletes},
		{"Transaction/Ended", testEnded},
		{"Transaction/Twice", testTwice},
		{"Transaction/GivesUp", testGivesUp},
		{"Transaction/RunsAgain", testRunsAgain},
	})
}

func testError(t *testing.T, st store.Store) {
	inv := invoice.Invoice{ID: recordID(0)}

	err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := putAll(ctx, tx, 10); err != nil {
			return err
		}

		// A list makes a store that buffers send what it has.
		filter := invoice.Filter{Owner: event.Owner{AccountID: "x"}, Limit: 1}
		if _, err := tx.Invoices(ctx, filter); err != nil {
			return err
		}

		inv.ID = recordID(1)
		if err := tx.PutInvoice(ctx, &inv); err != nil {
			return err
		}

		return fmt.Errorf("wrapped: %w", errRefused)
	})
	if !errors.Is(err, errRefused) {
		t.Fatalf("the closure's error came back as %v", err)
	}

	if inv.Version != 0 {
		t.Errorf("the version that a rolled-back put raised stays raised: %d", inv.Version)
	}

	expectEmpty(t, st)
}

func testPanic(t *testing.T, st store.Store) {
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("the closure's panic came back as %v", p)
			}
		}()

		_ = st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			if err := putAll(ctx, tx, 10); err != nil {
				return err
			}

			panic("boom")
		})
		t.Error("the closure's panic was swallowed")
	}()
	expectEmpty(t, st)
}

func testCanceled(t *testing.T, st store.Store) {
	ctx, cancel := context.WithCancel(t.Context())

	err := st.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := putAll(ctx, tx, 10); err != nil {
			return err
		}

		cancel()

		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an update whose context was canceled before the commit answered %v", err)
	}

	expectEmpty(t, st)
}

func testCanceledBefore(t *testing.T, st store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	err := st.Update(ctx, func(context.Context, store.Tx) error {
		t.Error("the closure ran under a canceled context")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an update under a canceled context answered %v", err)
	}

	if _, err := st.InvoiceByID(ctx, recordID(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("a read under a canceled context answered %v", err)
	}
}

// putAll puts one record of every kind.
func putAll(ctx context.Context, tx store.Tx, seed int) error {
	for _, kind := range recordKinds() {
		if err := kind.put(ctx, tx, kind.new(0, seed)); err != nil {
			return fmt.Errorf("%s: %w", kind.name(), err)
		}
	}

	return nil
}

// expectEmpty checks that none of those records exists, and that the store works.
func expectEmpty(t *testing.T, st store.Store) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for _, kind := range recordKinds() {
			if _, err := kind.get(ctx, tx, kind.new(0, 1)); !errors.Is(err, fault.NotFound) {
				t.Errorf("%s: a record remains of a transaction that failed (%v)", kind.name(), err)
			}
		}

		return nil
	})
	update(t, st, func(ctx context.Context, tx store.Tx) error { return putAll(ctx, tx, 10) })
}

var errRefused = errors.New("conformance: the closure refuses")

// testFaults lets the n-th of several writes fail, for every n, in two ways: the closure fails there,
// or the store refuses that write, at once or at the commit.
func testFaults(t *testing.T, st store.Store) {
	refuse := func(context.Context, store.Tx) error { return errRefused }

	for n, kind := range recordKinds() {
		err := st.Update(t.Context(), putAllBut(n, refuse))
		if !errors.Is(err, errRefused) {
			t.Fatalf(
				"write %d (%s) fails and the update answers %v, want %v",
				n, kind.name(), err, errRefused,
			)
		}

		if kind.version(kind.new(0, 1)) == nil {
			continue
		}

		err = st.Update(t.Context(), putAllBut(n, func(ctx context.Context, tx store.Tx) error {
			record := kind.new(0, 10)
			*kind.version(record) = 7 // of a row that does not exist

			return kind.put(ctx, tx, record)
		}))
		if !errors.Is(err, fault.Conflict) {
			t.Fatalf(
				"write %d (%s) fails and the update answers %v, want %v",
				n, kind.name(), err, fault.Conflict,
			)
		}
	}

	expectEmpty(t, st)
}

// putAllBut returns a closure that puts one record of every kind, and calls f in place of the n-th.
func putAllBut(n int, f closure) closure {
	return func(ctx context.Context, tx store.Tx) error {
		for i, kind := range recordKinds() {
			if i == n {
				if err := f(ctx, tx); err != nil {
					return err
				}

				continue
			}

			if err := kind.put(ctx, tx, kind.new(0, 10)); err != nil {
				return err
			}
		}

		return nil
	}
}

// testReadsOutside reads on the store inside a closure: only what was committed, without waiting.
func testReadsOutside(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		return tx.PutInvoice(ctx, &invoice.Invoice{ID: recordID(0), OrderID: "before"})
	})
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		inv, err := tx.InvoiceByID(ctx, recordID(0))
		if err != nil {
			return err
		}

		inv.OrderID = "after"
		if err := tx.PutInvoice(ctx, &inv); err != nil {
			return err
		}

		if err := tx.PutInvoice(ctx, &invoice.Invoice{ID: recordID(1)}); err != nil {
			return err
		}

		// A list makes a store that buffers send what it has.
		if _, err := tx.DueInvoices(ctx, epoch, 1); err != nil {
			return err
		}

		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()

		if got, err := st.InvoiceByID(limited, recordID(0)); err != nil || got.OrderID != "before" {
			t.Errorf(
				"a read on the store inside a closure sees %q (%v), want what was committed",
				got.OrderID, err,
			)
		}

		if _, err := st.InvoiceByID(limited, recordID(1)); !errors.Is(err, fault.NotFound) {
			t.Errorf("a read on the store shows an invoice that was not committed (%v)", err)
		}

		return nil
	})

	got, err := st.InvoiceByID(t.Context(), recordID(0))
	if err != nil || got.OrderID != "after" || got.Version != 2 {
		t.Errorf("after the commit: %+v %v", got, err)
	}
}

func testEnded(t *testing.T, st store.Store) {
	var kept store.Tx

	update(t, st, func(_ context.Context, tx store.Tx) error {
		kept = tx
		return nil
	})

	if err := kept.PutInvoice(t.Context(), &invoice.Invoice{ID: recordID(0)}); err == nil {
		t.Error("a transaction takes a write after it ended")
	}

	if _, err := st.InvoiceByID(t.Context(), recordID(0)); !errors.Is(err, fault.NotFound) {
		t.Errorf("a write after the end of its transaction was stored (%v)", err)
	}
}

// testTwice runs a closure twice that puts records it captured: the first run leaves nothing,
// neither in the store nor in the records.
func testTwice(t *testing.T, st store.Store) {
	var records []any
	for _, kind := range recordKinds() {
		records = append(records, kind.new(0, 10))
	}

	runs := 0

	update(t, twiceStore{st}, func(ctx context.Context, tx store.Tx) error {
		runs++

		for i, kind := range recordKinds() {
			if err := kind.put(ctx, tx, records[i]); err != nil {
				return fmt.Errorf("%s, run %d: %w", kind.name(), runs, err)
			}
		}

		first, err := tx.ReserveNumbers(ctx, "numbers", 5, 100)
		if err == nil && first != 100 {
			t.Errorf("run %d reserves numbers from %d: the first run left something", runs, first)
		}

		return err
	})

	if runs != 2 {
		t.Fatalf("the closure ran %d times, want 2", runs)
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for i, kind := range recordKinds() {
			got, err := kind.get(ctx, tx, records[i])
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name(), err)
			}

			expectEqual(t, kind.name()+":", records[i], got)
		}

		return nil
	})
}

// errFirstRun rolls the first run of a closure back.
var errFirstRun = errors.New("conformance: run the closure again")

// twiceStore runs every closure twice and rolls the first run back, as a store may after a conflict.
type twiceStore struct{ store.Store }

// Update runs f twice. When the first run fails, it returns that error.
func (s twiceStore) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	err := s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := f(ctx, tx); err != nil {
			return err
		}

		return errFirstRun
	})
	if !errors.Is(err, errFirstRun) {
		return err
	}

	return s.Store.Update(ctx, f)
}

func testGivesUp(t *testing.T, st store.Store) {
	runs := 0

	err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		runs++
		return tx.PutInvoice(ctx, &invoice.Invoice{ID: recordID(0), Version: 3})
	})
	if !errors.Is(err, fault.Conflict) {
		t.Errorf("an update that always conflicts answered %v", err)
	}

	if runs < 2 || runs > 100 {
		t.Errorf("an update that always conflicts ran %d times", runs)
	}
}

// testRunsAgain lets the first run of a closure lose against somebody else.
func testRunsAgain(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		return tx.PutInvoice(ctx, &invoice.Invoice{ID: recordID(0)})
	})

	stale, err := st.InvoiceByID(t.Context(), recordID(0))
	if err != nil {
		t.Fatal(err)
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		inv, err := tx.InvoiceByID(ctx, recordID(0))
		if err != nil {
			return err
		}

		inv.OrderID = "somebody else"

		return tx.PutInvoice(ctx, &inv)
	})

	runs := 0

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		inv := stale
		if runs++; runs > 1 {
			if inv, err = tx.InvoiceByID(ctx, recordID(0)); err != nil {
				return err
			}
		}

		inv.Description = "mine"

		return tx.PutInvoice(ctx, &inv)
	})

	got, err := st.InvoiceByID(t.Context(), recordID(0))

	merged := got.OrderID == "somebody else" && got.Description == "mine" && got.Version == 3
	if err != nil || !merged || runs != 2 {
		t.Errorf("after %d runs: %+v %v", runs, got, err)
	}
}
