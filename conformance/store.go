package conformance

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/conformance/internal/storebench"
	"github.com/seed-8ee7f392/payments/conformance/internal/storetest"
	"github.com/seed-8ee7f392/payments/store"
)

// TestStore tests a store against the guarantees of package store:
//
//   - Fields: every field of every record survives, and callers share no memory with the store.
//   - Transaction: nothing remains of a transaction that fails; a closure reads its own writes, may run twice
//     and never waits for a read.
//   - Version, Unique: stale and duplicate records are refused (fault.Conflict, fault.Duplicate).
//   - List: every filter, whole pages while rows come in, and no record of another owner.
//   - Work: due and waiting rows, in order and within the limit.
//   - Concurrent, Lease, Idempotency, Numbers: one winner among many goroutines.
//   - Deliveries, Events, Endpoints: fair claims, and pruning in batches.
//   - Contract: absent rows, runs after a conflict, deadlines, a closed store and a nested Update.
//   - Limit: every list without a limit, and with one.
//
// The factory returns a new, empty store per call that is safe for concurrent use, and closes it
// with t.Cleanup.
func TestStore(t *testing.T, factory func(t *testing.T) store.Store) {
	storetest.Fields(t, factory)
	storetest.Transactions(t, factory)
	storetest.Versions(t, factory)
	storetest.Lists(t, factory)
	storetest.Work(t, factory)
	storetest.Concurrency(t, factory)
	storetest.Deliveries(t, factory)
	storetest.Contract(t, factory)
	storetest.Limits(t, factory)
}

// BenchmarkStore measures the hot paths of a store:
//
//   - Create: invoices like those of the API (one transaction of 4 records), in 8 goroutines per
//     processor
//   - Read: one invoice by id, of 5,000
//   - Page: 50 invoices, of 5,000
//   - Match: 1,000 recipients of a batch of blocks, 10 of them ours
//
// The factory returns a new, empty store per call and closes it with b.Cleanup.
func BenchmarkStore(b *testing.B, factory func(b *testing.B) store.Store) {
	storebench.Run(b, factory)
}

// BenchmarkCreate compares the creation of invoices with a baseline in the same database. insert
// commits one row of a table with two columns, id and body.
//
// Both run in turns of half a second, so that other load of the machine slows both; the ratio is the
// median of the turns' ratios. Each runs in 8 and in 32 goroutines. The metrics are creates/s,
// inserts/s and ratio (creates per insert).
func BenchmarkCreate(b *testing.B, st store.Store, insert func(ctx context.Context, id, body string) error) {
	storebench.Create(b, st, insert)
}
