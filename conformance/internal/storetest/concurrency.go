package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store"
)

// Concurrency tests many goroutines on one row: claims, leases, balances, counters, and limits that
// lock an account.
func Concurrency(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, []testCase{
		{"Concurrent/IdempotencyKey", testConcurrentClaim},
		{"Concurrent/StaleIdempotencyKey", testConcurrentStaleClaim},
		{"Concurrent/FlushedIdempotencyKey", testFlushedClaim},
		{"Concurrent/Lease", testConcurrentLease},
		{"Concurrent/Leases", testConcurrentLeases},
		{"Concurrent/LeaseOrder", testLeaseOrder},
		{"Concurrent/HeldLeaseIsNotAwaited", testHeldLeaseIsNotAwaited},
		{"Concurrent/Heartbeat", testConcurrentHeartbeat},
		{"Concurrent/Balance", testConcurrentBalance},
		{"Concurrent/Numbers", testConcurrentNumbers},
		{"Concurrent/Account", testConcurrentAccount},
		{"Concurrent/Readers", testConcurrentReaders},
		{"Concurrent/Writers", testConcurrentWriters},
		{"Lease", testLease},
		{"Leases", testLeases},
		{"ReplacedLease", testReplacedLease},
		{"Idempotency/Answer", testAnswer},
		{"Idempotency/Prune", testPruneClaims},
		{"Numbers", testNumbers},
	})
}

// goroutines is how many run at once.
const goroutines = 32

// concurrently runs f in many goroutines at once and returns their results.
func concurrently[T any](f func(n int) T) []T {
	results := make([]T, goroutines)

	var start, done sync.WaitGroup
	start.Add(1)

	for n := range results {
		done.Go(func() {
			start.Wait()

			results[n] = f(n)
		})
	}

	start.Done()
	done.Wait()

	return results
}

// countSuccess returns how many results are nil. The others have to be errors of a kind.
func countSuccess(t *testing.T, what string, results []error, kind error) int {
	t.Helper()

	count := 0

	for _, err := range results {
		if err == nil {
			count++
		} else if !errors.Is(err, kind) {
			t.Errorf("%s was answered %v", what, err)
		}
	}

	return count
}

// testConcurrentBalance reserves against one balance row from many goroutines, the first of
// which makes it.
func testConcurrentBalance(t *testing.T, st store.Store) {
	results := concurrently(func(n int) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			balance, ok, err := tx.BalanceForUpdate(ctx, "net", "wallet", "asset")
			if err != nil {
				return err
			}

			if !ok {
				balance = wallet.Balance{
					Network: "net",
					Address: "wallet",
					AssetID: "asset",
					OnChain: chain.Units(10),
				}
			}

			if balance.Available().IsZero() {
				return fault.New(fault.State, "insufficient_balance", "nothing left")
			}

			balance.Reserved = balance.Reserved.Add(chain.Units(1))
			reservation := wallet.Reservation{ObjectID: fmt.Sprint(n), Amount: chain.Units(1)}
			balance.Reservations = append(balance.Reservations, reservation)

			return tx.PutBalance(ctx, &balance)
		})
	})
	reserved := countSuccess(t, "a reservation", results, fault.State)

	balance, _, err := st.Balance(t.Context(), "net", "wallet", "asset")
	if err != nil || reserved != 10 || balance.Reserved != chain.Units(10) ||
		len(balance.Reservations) != 10 {
		t.Errorf("%d reservations of 10 were made: %+v %v", reserved, balance, err)
	}
}

// testConcurrentNumbers reserves ranges of one counter: they neither overlap nor have gaps.
func testConcurrentNumbers(t *testing.T, st store.Store) {
	firsts := concurrently(func(int) (first int64) {
		err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) (err error) {
			first, err = tx.ReserveNumbers(ctx, "counter", 10, 1)
			return err
		})
		if err != nil {
			t.Error(err)
		}

		return first
	})
	slices.Sort(firsts)

	for i, first := range firsts {
		if want := int64(1 + 10*i); first != want {
			t.Fatalf("ranges overlap or have gaps: %v", firsts)
		}
	}
}

// testConcurrentAccount keeps a limit over several rows by locking the account.
func testConcurrentAccount(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		return tx.PutAccount(ctx, &account.Account{ID: owners[0].AccountID})
	})

	const limit = 5

	results := concurrently(func(n int) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			if err := tx.LockAccount(ctx, owners[0].AccountID); err != nil {
				return err
			}

			made, err := tx.PayoutsSince(ctx, owners[0], epoch)
			if err != nil {
				return err
			}

			if made >= limit {
				return fault.New(fault.Limited, "payout_limit_exceeded", "enough")
			}

			return tx.PutPayout(
				ctx, &payout.Payout{ID: recordID(n), Owner: owners[0], CreatedAt: epoch},
			)
		})
	})

	made := countSuccess(t, "a payout", results, fault.Limited)
	if made != limit {
		t.Errorf("%d payouts were made under a limit of %d", made, limit)
	}

	expectError(
		t, st, fault.NotFound, "LockAccount of an unknown account",
		func(ctx context.Context, tx store.Tx) error {
			return tx.LockAccount(ctx, "none")
		},
	)
}

// testConcurrentReaders reads while others write: what is read was committed as a whole.
func testConcurrentReaders(t *testing.T, st store.Store) {
	owner := event.Owner{AccountID: "acc"}

	put := func(value string) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			for n := range 2 {
				inv, err := tx.InvoiceByID(ctx, recordID(n))
				if errors.Is(err, fault.NotFound) {
					inv, err = invoice.Invoice{ID: recordID(n), Owner: owner}, nil
				}

				if err != nil {
					return err
				}

				inv.OrderID = value
				if err := tx.PutInvoice(ctx, &inv); err != nil {
					return err
				}
			}

			return nil
		})
	}
	if err := put("start"); err != nil {
		t.Fatal(err)
	}

	results := concurrently(func(n int) error {
		if n%4 == 0 {
			return put(fmt.Sprint(n))
		}

		for range 5 {
			all, err := st.Invoices(t.Context(), invoice.Filter{Owner: owner, Limit: 10})
			if err != nil || len(all) != 2 {
				return fmt.Errorf("%d invoices: %w", len(all), err)
			}

			if all[0].OrderID != all[1].OrderID {
				return fmt.Errorf("half of a transaction is seen: %q and %q", all[0].OrderID, all[1].OrderID)
			}
		}

		return nil
	})
	for _, err := range results {
		if err != nil {
			t.Error(err)
		}
	}
}

// testConcurrentWriters ends transactions that only write at once, which a store may commit together.
// Half of them make the same invoice as a rival, and the context of one is over. Each gets its own
// result, and all or nothing of it is stored.
func testConcurrentWriters(t *testing.T, st store.Store) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()

	for round := range 5 {
		results := concurrently(func(n int) error {
			ctx := t.Context()
			if n == canceledWriter {
				ctx = canceled
			}

			return st.Update(ctx, writeInvoice(round*goroutines, n))
		})

		for n, err := range results {
			expectWriter(t, n, results)

			found, readErr := st.EventsByID(t.Context(), []string{writerEventID(round*goroutines, n)})
			if readErr != nil || (len(found) == 1) != (err == nil) {
				t.Errorf(
					"writer %d was answered %v, and %d events of it are stored (%v)",
					n, err, len(found), readErr,
				)
			}
		}
	}
}

// canceledWriter is the writer whose context is over.
const canceledWriter = 2

// writeInvoice returns the closure of the n-th writer of a round that numbers records from base:
// writers 0 and 1 make one invoice, so do 4 and 5, and so on.
func writeInvoice(base, n int) closure {
	id := n
	if n%4 == 1 {
		id--
	}

	return func(ctx context.Context, tx store.Tx) error {
		inv := invoice.Invoice{
			ID:      recordID(base + id),
			Owner:   owners[0],
			Options: []invoice.Option{{Network: "a"}, {Network: fmt.Sprint("b", n%3)}},
		}
		made := event.Event{ID: writerEventID(base, n), Owner: owners[0], CreatedAt: epoch}

		return errors.Join(tx.PutInvoice(ctx, &inv), tx.PutEvents(ctx, made))
	}
}

func writerEventID(base, n int) string { return fmt.Sprint("evt_", base+n) }

// expectWriter checks the result of the n-th writer.
func expectWriter(t *testing.T, n int, results []error) {
	t.Helper()

	err, rival := results[n], n%4 < 2
	switch {
	case n == canceledWriter && !errors.Is(err, context.Canceled):
		t.Errorf("a writer whose context was over was answered %v", err)
	case n%4 == 1 && (err == nil) == (results[n-1] == nil):
		t.Errorf("of two that made one invoice, one was answered %v and the other %v", results[n-1], err)
	case rival && err != nil && !errors.Is(err, fault.Duplicate),
		!rival && n != canceledWriter && err != nil:
		t.Errorf("writer %d was answered %v", n, err)
	}
}

// testNumbers reserves ranges of two counters, one after the other.
func testNumbers(t *testing.T, st store.Store) {
	reserve := func(counter string, n int, first, want int64) {
		t.Helper()
		update(t, st, func(ctx context.Context, tx store.Tx) error {
			if got, err := tx.ReserveNumbers(ctx, counter, n, first); err != nil || got != want {
				t.Errorf("%d numbers of %s: from %d (%v), want %d", n, counter, got, err, want)
			}

			return nil
		})
	}

	reserve("a", 3, 1, 1)
	reserve("a", 1, 1, 4)
	reserve("b", 5, 0, 0)
	reserve("a", 100, 1, 5)
	reserve("b", 1, 0, 5)

	// What is rolled back leaves no gap.
	err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.ReserveNumbers(ctx, "a", 50, 1); err != nil {
			return err
		}

		return errRefused
	})
	if !errors.Is(err, errRefused) {
		t.Fatal(err)
	}

	reserve("a", 1, 1, 105)
}
