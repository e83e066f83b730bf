package storetest

// Many goroutines on one row: claims, leases, balances, counters, and limits that lock an account.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// Concurrency tests many goroutines on one row.
func Concurrency(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, concurrencyTests())
}

func concurrencyTests() []testCase {
	return []testCase{
		{"Concurrent/IdempotencyKey", testConcurrentClaim},
		{"Concurrent/StaleIdempotencyKey", testConcurrentStaleClaim},
		{"Concurrent/Lease", testConcurrentLease},
		{"Concurrent/Balance", testConcurrentBalance},
		{"Concurrent/Numbers", testConcurrentNumbers},
		{"Concurrent/Account", testConcurrentAccount},
		{"Concurrent/Readers", testConcurrentReaders},
		{"Concurrent/Writers", testConcurrentWriters},
		{"Lease", testLease},
		{"Idempotency/Answer", testAnswer},
		{"Idempotency/Prune", testPruneClaims},
		{"Numbers", testNumbers},
	}
}

const goroutines = 32

// concurrently runs f in many goroutines at once and returns their answers.
func concurrently[T any](f func(n int) T) []T {
	answers := make([]T, goroutines)

	var start, done sync.WaitGroup
	start.Add(1)

	for n := range answers {
		done.Go(func() {
			start.Wait()

			answers[n] = f(n)
		})
	}

	start.Done()
	done.Wait()

	return answers
}

// testConcurrentClaim sends one request many times at once: it is carried out once, and the
// others are refused or read the answer.
func testConcurrentClaim(t *testing.T, st store.Store) {
	k := idempotency.Key{Owner: owners[0], Key: "once"}
	answers := concurrently(func(n int) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			r := idempotency.Record{Key: k, CreatedAt: epoch}
			if err := tx.ClaimIdempotencyKey(ctx, r, time.Time{}, 30*time.Second); err != nil {
				if errors.Is(err, fault.Duplicate) {
					if got, ok, err := tx.IdempotencyRecord(ctx, k); err != nil || !ok || got.Status != 200 {
						return fmt.Errorf("a refused claim reads %+v %v %w", got, ok, err)
					}
				}

				return err
			}

			inv := invoice.Invoice{ID: recordID(n), Owner: owners[0]}
			if err := tx.PutInvoice(ctx, &inv); err != nil {
				return err
			}

			r.Status, r.SealedBody = 200, []byte(inv.ID)

			return tx.PutIdempotencyAnswer(ctx, r)
		})
	})
	won := 0

	for _, err := range answers {
		if err == nil {
			won++
		} else if !errors.Is(err, fault.Duplicate) {
			t.Errorf("a rival was answered %v", err)
		}
	}

	all, err := st.Invoices(t.Context(), invoice.Filter{Owner: owners[0], Limit: 100})

	got, _, err2 := st.IdempotencyRecord(t.Context(), k)
	if err := errors.Join(
		err, err2,
	); err != nil || won != 1 || len(all) != 1 ||
		string(got.SealedBody) != all[0].ID {
		t.Errorf(
			"%d of %d requests were carried out, %d invoices made, the answer is %q (%v)",
			won, goroutines, len(all), got.SealedBody, err,
		)
	}
}

// testConcurrentStaleClaim claims a key anew from many goroutines, whose record is too old to
// count: one of them gets it, and its record is not taken for the old one.
func testConcurrentStaleClaim(t *testing.T, st store.Store) {
	r := idempotency.Record{Key: idempotency.Key{Owner: owners[0], Key: "again"}, CreatedAt: timeAt(10)}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.ClaimIdempotencyKey(ctx, r, time.Time{}, time.Second); err != nil {
			return err
		}

		old := r
		old.Status, old.SealedBody = 200, []byte("old")

		return tx.PutIdempotencyAnswer(ctx, old)
	})
	claim := func(stale time.Time) func(ctx context.Context, tx store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error {
			fresh := idempotency.Record{Key: r.Key, KeyID: "fresh", CreatedAt: timeAt(100)}
			if err := tx.ClaimIdempotencyKey(ctx, fresh, stale, 30*time.Second); err != nil {
				return err
			}

			if got, ok, err := tx.IdempotencyRecord(
				ctx, r.Key,
			); err != nil || !ok || got.Status != 0 || len(got.SealedBody) != 0 ||
				got.KeyID != "fresh" {
				t.Errorf("what was claimed anew is %+v %v (%v)", got, ok, err)
			}

			fresh.Status = 201

			return tx.PutIdempotencyAnswer(ctx, fresh)
		}
	}
	expectError(t, st, fault.Duplicate, "a claim of a key whose record counts", claim(timeAt(9)))

	won := 0

	for _, err := range concurrently(func(int) error { return st.Update(t.Context(), claim(timeAt(10))) }) {
		if err == nil {
			won++
		} else if !errors.Is(err, fault.Duplicate) {
			t.Errorf("a rival was answered %v", err)
		}
	}

	if got, _, err := st.IdempotencyRecord(t.Context(), r.Key); err != nil || won != 1 || got.Status != 201 {
		t.Errorf(
			"%d of %d claims of a stale key succeeded, the record is %+v (%v)",
			won, goroutines, got, err,
		)
	}
}

// testConcurrentWriters has transactions that only write end at once, which a store may commit
// together: half of them make the same invoice as a rival, and one of them ends with its context.
// Each hears its own answer, and all or nothing of it is stored.
func testConcurrentWriters(t *testing.T, st store.Store) {
	over, end := context.WithCancel(t.Context())
	end()

	for round := range 5 {
		id := func(n int) string { // 0 and 1 are rivals, so are 4 and 5, …
			if n%4 == 1 {
				n--
			}

			return recordID(round*goroutines + n)
		}
		eventID := func(n int) string { return fmt.Sprint("evt_", round*goroutines+n) }

		answers := concurrently(func(n int) error {
			ctx := t.Context()
			if n == 2 {
				ctx = over
			}

			return st.Update(ctx, func(ctx context.Context, tx store.Tx) error {
				inv := invoice.Invoice{
					ID:      id(n),
					Owner:   owners[0],
					Options: []invoice.Option{{Network: "a"}, {Network: fmt.Sprint("b", n%3)}},
				}

				return errors.Join(
					tx.PutInvoice(ctx, &inv),
					tx.PutEvents(
						ctx,
						event.Event{ID: eventID(n), Owner: owners[0], CreatedAt: epoch},
					),
				)
			})
		})
		for n, err := range answers {
			switch {
			case n == 2 && !errors.Is(err, context.Canceled):
				t.Errorf("a writer whose context was over was answered %v", err)
			case n%4 == 1 && (err == nil) == (answers[n-1] == nil):
				t.Errorf(
					"of two that made one invoice, one was answered %v and the other %v",
					answers[n-1], err,
				)
			case n%4 < 2 && err != nil && !errors.Is(err, fault.Duplicate), n%4 >= 2 && n != 2 && err != nil:
				t.Errorf("writer %d was answered %v", n, err)
			}

			if found, e := st.EventsByID(
				t.Context(), []string{eventID(n)},
			); e != nil ||
				(len(found) == 1) != (err == nil) {
				t.Errorf(
					"writer %d was answered %v, and %d events of it are stored (%v)",
					n, err, len(found), e,
				)
			}
		}
	}
}

// testConcurrentLease lets processes fight for a lease that does not exist yet: one gets it.
func testConcurrentLease(t *testing.T, st store.Store) {
	type answer struct {
		l   lease.Lease
		ok  bool
		err error
	}

	answers := concurrently(func(n int) (a answer) {
		a.err = st.Update(t.Context(), func(ctx context.Context, tx store.Tx) (err error) {
			a.l, a.ok, err = lease.Take(
				ctx, tx, "watch/net", fmt.Sprint("process ", n), epoch, time.Minute,
			)

			return err
		})

		return a
	})
	taken := 0

	for _, a := range answers {
		if a.err != nil {
			t.Error(a.err)
		}

		if a.ok {
			taken++
		}
	}

	if taken != 1 {
		t.Errorf("%d processes hold one lease", taken)
	}
}

// testConcurrentBalance reserves against one balance row from many goroutines, the first of
// which makes it.
func testConcurrentBalance(t *testing.T, st store.Store) {
	answers := concurrently(func(n int) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			b, ok, err := tx.BalanceForUpdate(ctx, "net", "wallet", "asset")
			if err != nil {
				return err
			}

			if !ok {
				b = wallet.Balance{
					Network: "net",
					Address: "wallet",
					AssetID: "asset",
					OnChain: chain.Units(10),
				}
			}

			if b.Available().IsZero() {
				return fault.New(fault.State, "insufficient_balance", "nothing left")
			}

			b.Reserved = b.Reserved.Add(chain.Units(1))
			b.Reservations = append(
				b.Reservations, wallet.Reservation{ObjectID: fmt.Sprint(n), Amount: chain.Units(1)},
			)

			return tx.PutBalance(ctx, &b)
		})
	})
	reserved := 0

	for _, err := range answers {
		if err == nil {
			reserved++
		} else if !errors.Is(err, fault.State) {
			t.Errorf("a reservation was answered %v", err)
		}
	}

	b, _, err := st.Balance(t.Context(), "net", "wallet", "asset")
	if err != nil || reserved != 10 || b.Reserved != chain.Units(10) || len(b.Reservations) != 10 {
		t.Errorf("%d reservations of 10 were made: %+v %v", reserved, b, err)
	}
}

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

	answers := concurrently(func(n int) error {
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
	made := 0

	for _, err := range answers {
		if err == nil {
			made++
		} else if !errors.Is(err, fault.Limited) {
			t.Errorf("a payout was answered %v", err)
		}
	}

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

	for _, err := range concurrently(func(n int) error {
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
	}) {
		if err != nil {
			t.Error(err)
		}
	}
}

// testLease plays two processes that believe in the same lease: only the one with the fence can write.
func testLease(t *testing.T, st store.Store) {
	take := func(owner string, at time.Time) (l lease.Lease, ok bool) {
		update(t, st, func(ctx context.Context, tx store.Tx) (err error) {
			l, ok, err = lease.Take(ctx, tx, "wallet/net", owner, at, time.Minute)
			return err
		})

		return l, ok
	}
	write := func(l lease.Lease, id string) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			if err := tx.PutInvoice(ctx, &invoice.Invoice{ID: id}); err != nil {
				return err
			}

			return lease.Check(ctx, tx, l)
		})
	}

	a, ok := take("a", epoch)
	if !ok || a.Fence != 1 {
		t.Fatalf("the first take: %+v %v", a, ok)
	}

	if held, ok := take("b", epoch.Add(59*time.Second)); ok || held.Owner != "a" {
		t.Fatalf("b took a lease that had not run out: %+v", held)
	}

	b, ok := take("b", epoch.Add(time.Minute))
	if !ok || b.Fence != 2 {
		t.Fatalf("b after the deadline: %+v %v", b, ok)
	}

	if err := write(a, recordID(0)); !errors.Is(err, fault.LeaseLost) {
		t.Errorf("a process whose lease was taken over wrote (%v)", err)
	}

	if _, err := st.InvoiceByID(t.Context(), recordID(0)); !errors.Is(err, fault.NotFound) {
		t.Errorf("its results remain (%v)", err)
	}

	if err := write(b, recordID(1)); err != nil {
		t.Errorf("the holder cannot write: %v", err)
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return lease.Release(ctx, tx, b) })

	if c, ok := take("c", epoch.Add(time.Minute)); !ok || c.Fence != 3 {
		t.Errorf("after it was given back: %+v %v", c, ok)
	}
}

func testAnswer(t *testing.T, st store.Store) {
	r := idempotency.Record{
		Key:         idempotency.Key{Owner: owners[0], Key: "k"},
		KeyID:       "key",
		Scopes:      []string{"a", "b"},
		Fingerprint: [32]byte{1, 2},
		CreatedAt:   epoch,
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.ClaimIdempotencyKey(ctx, r, time.Time{}, time.Second); err != nil {
			return err
		}

		if got, ok, err := tx.IdempotencyRecord(ctx, r.Key); err != nil || !ok || got.Status != 0 {
			t.Errorf("the claim in its transaction: %+v %v %v", got, ok, err)
		}

		answer := r

		answer.Status, answer.SealedBody = 422, []byte{0, 1, 2}
		if err := tx.PutIdempotencyAnswer(ctx, answer); err != nil {
			return err
		}

		got, _, err := tx.IdempotencyRecord(ctx, r.Key)
		expectEqual(t, "in its transaction", answer, got)

		return err
	})

	for _, other := range []idempotency.Key{
		{Owner: owners[1], Key: "k"},
		{Owner: owners[2], Key: "k"},
		{Owner: owners[0], Key: "K"},
	} {
		if _, ok, err := st.IdempotencyRecord(t.Context(), other); err != nil || ok {
			t.Errorf("the answer of %+v is found as %+v (%v)", r.Key, other, err)
		}
	}

	if err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		none := r
		none.Key.Key = "none"

		return tx.PutIdempotencyAnswer(ctx, none)
	}); err == nil {
		t.Error("an answer was stored for a key that nobody claimed")
	}
}

func testPruneClaims(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 10 {
			r := idempotency.Record{
				Key:       idempotency.Key{Owner: owners[n%3], Key: fmt.Sprint(n)},
				CreatedAt: timeAt(n),
			}
			if err := tx.ClaimIdempotencyKey(ctx, r, time.Time{}, time.Second); err != nil {
				return err
			}
		}

		return nil
	})
	expectPruned(t, st, []int{4, 3, 0}, func(ctx context.Context, tx store.Tx) (int, error) {
		return tx.PruneIdempotencyKeys(ctx, timeAt(7), 4)
	})

	for n := range 10 {
		_, ok, err := st.IdempotencyRecord(
			t.Context(), idempotency.Key{Owner: owners[n%3], Key: fmt.Sprint(n)},
		)
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

	if err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.ReserveNumbers(ctx, "a", 50, 1); err != nil {
			return err
		}

		return errRefused
	}); !errors.Is(err, errRefused) {
		t.Fatal(err)
	}

	reserve("a", 1, 1, 105)
}
