package storetest

// Transactions: nothing remains of one that fails, reads see its own writes, and the store itself
// shows only what was committed and never waits.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Transactions tests what is stored and seen, inside a closure and outside.
func Transactions(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, transactionTests())
}

func transactionTests() []testCase {
	return []testCase{
		{"Transaction/Error", testError},
		{"Transaction/Panic", testPanic},
		{"Transaction/Canceled", testCanceled},
		{"Transaction/CanceledBefore", testCanceledBefore},
		{"Transaction/FaultAtEveryWrite", testFaults},
		{"Transaction/ReadsOutside", testOutside},
		{"Transaction/ReadsOwnWrites", testOwnWrites},
		{"Transaction/ReadsOwnDeletes", testOwnDeletes},
		{"Transaction/Ended", testEnded},
		{"Transaction/Twice", testTwice},
		{"Transaction/GivesUp", testGivesUp},
		{"Transaction/RunsAgain", testRunsAgain},
	}
}

// putAll puts one record of every kind.
func putAll(ctx context.Context, tx store.Tx, seed int) error {
	for _, k := range recordKinds() {
		if err := k.put(ctx, tx, k.new(0, seed)); err != nil {
			return fmt.Errorf("%s: %w", k.name(), err)
		}
	}

	return nil
}

// expectEmpty checks that none of those records exists, and that the store works.
func expectEmpty(t *testing.T, st store.Store) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for _, k := range recordKinds() {
			if _, err := k.get(ctx, tx, k.new(0, 1)); !errors.Is(err, fault.NotFound) {
				t.Errorf("%s: a record remains of a transaction that failed (%v)", k.name(), err)
			}
		}

		return nil
	})
	update(t, st, func(ctx context.Context, tx store.Tx) error { return putAll(ctx, tx, 10) })
}

var errRefused = errors.New("conformance: the closure refuses")

func testError(t *testing.T, st store.Store) {
	inv := invoice.Invoice{ID: recordID(0)}

	err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := putAll(ctx, tx, 10); err != nil {
			return err
		}
		// A list makes a store that buffers send what it has.
		if _, err := tx.Invoices(
			ctx, invoice.Filter{Owner: event.Owner{AccountID: "x"}, Limit: 1},
		); err != nil {
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

// testFaults lets the n-th of a row of writes fail, for every n, in two ways: the closure
// fails there, or the store refuses that write, at once or at the commit.
func testFaults(t *testing.T, st store.Store) {
	kinds := recordKinds()
	for n := range kinds {
		for _, refused := range []bool{false, true} {
			if refused && kinds[n].version(kinds[n].new(0, 1)) == nil {
				continue
			}

			err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
				for i, k := range kinds {
					record := k.new(0, 10)

					if i == n {
						if !refused {
							return errRefused
						}

						*k.version(record) = 7 // of a row that does not exist
					}

					if err := k.put(ctx, tx, record); err != nil {
						return err
					}
				}

				return nil
			})

			want := errRefused
			if refused {
				want = fault.Conflict
			}

			if !errors.Is(err, want) {
				t.Fatalf(
					"write %d (%s) fails and the update answers %v, want %v",
					n, kinds[n].name(), err, want,
				)
			}
		}
	}

	expectEmpty(t, st)
}

func testOutside(t *testing.T, st store.Store) {
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
		// A list, so that a store that buffers has sent.
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

	if got, err := st.InvoiceByID(
		t.Context(), recordID(0),
	); err != nil || got.OrderID != "after" ||
		got.Version != 2 {
		t.Errorf("after the commit: %+v %v", got, err)
	}
}

// testOwnWrites puts a record and asks every list of its kind for it in the same transaction.
func testOwnWrites(t *testing.T, st store.Store) {
	owner := event.Owner{AccountID: "acc", Livemode: true}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		one := func(what string, n int, err error) {
			t.Helper()

			if err != nil || n != 1 {
				t.Errorf("%s: %d records of the transaction's own (%v), want 1", what, n, err)
			}
		}

		p := invoice.Payment{
			ID:        recordID(0),
			Owner:     owner,
			Status:    invoice.Detected,
			InvoiceID: "inv",
			Network:   "net",
			TxHash:    "h",
			TxIndex:   2,
			Address:   "a",
			AssetID:   "s",
			Block:     chain.Ref{Height: 5, Hash: "b"},
			DueAt:     epoch,
		}
		if err := tx.PutPayments(ctx, &p); err != nil {
			return err
		}

		list, err := tx.Payments(ctx, invoice.PaymentFilter{Owner: owner, Limit: 5})
		one("Payments", len(list), err)

		p.Required = 3
		if err := tx.PutPayments(ctx, &p); err != nil {
			return err
		}

		list, err = tx.PaymentsOfInvoice(ctx, "inv")
		one("PaymentsOfInvoice", len(list), err)

		if len(list) == 1 && list[0].Required != 3 {
			t.Errorf("the second put of a transaction is not read: %+v", list[0])
		}

		list, err = tx.PaymentsByTransfer(
			ctx, "net",
			[]invoice.TransferKey{{TxHash: "h", Index: 2}, {TxHash: "h", Index: 1}, {TxHash: "x", Index: 2}},
		)
		one("PaymentsByTransfer", len(list), err)
		list, err = tx.DuePayments(ctx, epoch, 5)
		one("DuePayments", len(list), err)
		list, err = tx.UnconfirmedPayments(ctx, "net", 5, 5)
		one("UnconfirmedPayments", len(list), err)

		if err := tx.PutAccount(
			ctx, &account.Account{ID: "acc", Settings: account.Settings{ToleranceBPS: 7}},
		); err != nil {
			return err
		}

		if s, err := tx.InvoiceSettings(ctx, "acc"); err != nil || s.ToleranceBPS != 7 {
			t.Errorf("InvoiceSettings: %+v %v", s, err)
		}

		if err := tx.LockAccount(ctx, "acc"); err != nil {
			t.Errorf("LockAccount: %v", err)
		}

		if err := tx.PutKey(ctx, &account.Key{ID: recordID(3), Owner: owner, Hash: [32]byte{9}}); err != nil {
			return err
		}

		if k, a, err := tx.KeyByHash(ctx, [32]byte{9}); err != nil || k.ID != recordID(3) || a.ID != "acc" {
			t.Errorf("KeyByHash: %+v %+v %v", k, a, err)
		}

		if err := tx.PutAttemptHash(ctx, "net", "hash", "tx", wallet.Sweep); err != nil {
			return err
		}

		own, err := tx.OwnTransactions(ctx, "net", []string{"hash", "other"})
		one("OwnTransactions", len(own), err)

		if err := tx.PutEndpoint(
			ctx, &webhook.Endpoint{ID: recordID(4), Owner: owner, Status: webhook.Enabled},
		); err != nil {
			return err
		}

		endpoints, err := tx.EndpointsOf(ctx, owner)
		one("EndpointsOf", len(endpoints), err)

		return nil
	})
}

func testOwnDeletes(t *testing.T, st store.Store) {
	owner := event.Owner{AccountID: "acc"}
	endpoint := webhook.Endpoint{ID: recordID(0), Owner: owner}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.PutEndpoint(ctx, &endpoint) })
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.DeleteEndpoint(ctx, endpoint.ID); err != nil {
			return err
		}

		if _, err := tx.WebhookEndpoint(ctx, owner, endpoint.ID); !errors.Is(err, fault.NotFound) {
			t.Errorf("a deleted endpoint is read by its id (%v)", err)
		}

		if all, err := tx.WebhookEndpoints(
			ctx, webhook.EndpointFilter{Owner: owner, Limit: 5},
		); err != nil ||
			len(all) != 0 {
			t.Errorf("a deleted endpoint is in the list: %+v %v", all, err)
		}

		if _, err := st.WebhookEndpoint(ctx, owner, endpoint.ID); err != nil {
			t.Errorf("an endpoint is gone before its deletion was committed: %v", err)
		}

		again := webhook.Endpoint{ID: endpoint.ID, Owner: owner, URL: "again"}
		if err := tx.PutEndpoint(ctx, &again); err != nil {
			return err
		}

		return tx.DeleteEndpoint(ctx, "none")
	})

	if got, err := st.WebhookEndpoint(
		t.Context(), owner, endpoint.ID,
	); err != nil || got.URL != "again" ||
		got.Version != 1 {
		t.Errorf("put after its deletion: %+v %v", got, err)
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
	for _, k := range recordKinds() {
		records = append(records, k.new(0, 10))
	}

	runs := 0

	update(t, twiceStore{st}, func(ctx context.Context, tx store.Tx) error {
		runs++

		for i, k := range recordKinds() {
			if err := k.put(ctx, tx, records[i]); err != nil {
				return fmt.Errorf("%s, run %d: %w", k.name(), runs, err)
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
		for i, k := range recordKinds() {
			got, err := k.get(ctx, tx, records[i])
			if err != nil {
				return fmt.Errorf("%s: %w", k.name(), err)
			}

			expectEqual(t, k.name()+":", records[i], got)
		}

		return nil
	})
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
	if err != nil || got.OrderID != "somebody else" || got.Description != "mine" || got.Version != 3 ||
		runs != 2 {
		t.Errorf("after %d runs: %+v %v", runs, got, err)
	}
}
