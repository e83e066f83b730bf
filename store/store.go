// Package store declares the store that the engine needs: the union of the domains' store roles.
//
// Reader reads, Tx writes inside one transaction, Store is both with Update and Close. The memory, SQLite,
// PostgreSQL and MariaDB stores pass the same suite (conformance.TestStore), as a third party's must.
//
// Guarantees of every implementation:
//
//   - Update runs the closure in one transaction and commits when it returns nil; on an error, a
//     panic or a cancelled context nothing of it remains. Writes may be buffered, but every read
//     inside the closure sees them.
//   - A closure runs again when it ends in fault.Conflict, whether the store found the conflict or the
//     closure returned it, wrapped or not. An implementation gives up after a bounded number of tries
//     with fault.Conflict. After any other error it does not run again.
//   - An Update inside a closure, with its context, is refused: fault.State, code update_nested. Reads on
//     the store inside a closure see what was committed, and do not wait.
//   - A record with a Version was read at that version; Version 0 means that it must not exist yet.
//     A Put with any other version fails, at the latest at commit, with fault.Conflict. A Put of an existing
//     record under Version 0 fails with fault.Duplicate. Put raises the Version in the caller's record.
//     Update resets it when it rolls back, so that a closure that runs again may put a record it captured.
//   - A record keeps its account for ever. A store may spread records by account, and find one by its id and account
//     only: the same id under two accounts need not be fault.Duplicate.
//   - Everything is correct at READ COMMITTED: limits over several rows lock one parent row.
//   - Lists page by id, newest first, with After exclusive; each is one query by key. A limit of 0 or less
//     is no limit, in every list: the domains decide on the size of pages.
//   - Reads of one record by its id answer fault.NotFound when there is none, or it is another owner's.
//     Reads of a row that may be absent return ok instead: then the record is zero, and its first Put has
//     Version 0.
//   - Bounds of time include their first moment and exclude their last: CreatedAfter ≤ t < CreatedBefore.
//     A record with a deadline is due, and a claimed one is free, at exactly that moment.
//   - The id of an invoice, a payout, a refund, a settlement or an event begins with the millisecond of its CreatedAt
//     since 1970, in 12 hex digits (an event's after "evt_"). So a list for a period of time is a range of ids.
//   - Q matches the beginning of a field, without case; no character of it is special.
//   - After Close every call answers fault.Unavailable; a second Close does nothing.
//   - Records come back as they were put: times in UTC with at least millisecond precision, empty slices and
//     maps may come back nil.
//   - docs/write-a-store.md lists what is unique beside the records' keys.
//   - Errors are wrapped and found by errors.Is: fault.NotFound, fault.Duplicate, fault.Conflict,
//     fault.Unavailable (the database is down, full, read-only or of another schema; the message says which).
package store

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Reader is the union of the domains' read interfaces.
type Reader interface {
	account.Reader
	idempotency.Reader
	invoice.Reader
	scan.Reader
	wallet.Reader
	settlement.Reader
	payout.Reader
	webhook.Reader
}

// Tx is one transaction of a store. Its methods are those of the domains' roles, and PutEvents.
type Tx interface {
	Reader
	account.Tx
	idempotency.Tx
	invoice.Tx
	wallet.Tx
	settlement.Tx
	payout.Writer
	webhook.Tx
	// PutEvents stores rendered events. Domains call AppendEvents, which the engine implements: it runs the
	// reactions, renders, and calls PutEvents before the commit. A store's own AppendEvents is PutEvents.
	PutEvents(ctx context.Context, events ...event.Event) error
	// EndpointsOf returns the endpoints of an owner that are not disabled, in any order: the receivers of an
	// event. Like InvoiceSettings, it may return rows that the store read before, if the commit fails with
	// fault.Conflict in case they have changed.
	EndpointsOf(ctx context.Context, owner event.Owner) ([]webhook.Endpoint, error)
}

// Breaker is a Tx that can be kept from committing. When Engine.UpdateIn fails in the host's transaction, it
// breaks that transaction.
type Breaker interface {
	// Break makes every later use of the transaction, and its commit, fail with err.
	Break(err error)
}

// Flusher is a Tx that buffers its writes. A Tx that may send the claim of an Idempotency-Key later than
// ClaimIdempotencyKey is a Flusher: the engine flushes a claim before it calls the host's code.
type Flusher interface {
	// Flush sends the buffered writes, a claim first, and returns their errors.
	Flush(ctx context.Context) error
}

// Store holds the records. It is safe for concurrent use.
type Store interface {
	Reader
	// Update runs f in one transaction; see the package comment.
	Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
	// Close waits for running transactions and releases the resources that the store opened itself. It leaves
	// alone what the host passed in.
	Close() error
}

// Clock is a store with a clock that all processes share. Engine.Health then shows how far the process's own
// clock differs, and nothing is signed while it differs by more than 5 minutes.
type Clock interface {
	// Time returns the store's current time.
	Time(ctx context.Context) (time.Time, error)
}

// Prober is a store that can detect that its database was changed or went away under the process.
type Prober interface {
	// Probe fails with fault.Unavailable if the schema has another version or the database is gone. All later
	// uses of the store fail likewise until a Probe succeeds.
	Probe(ctx context.Context) error
}

// Waker notifies all processes of one service of new work. Notifications are hints, sent after a
// commit: polling finds all work without them. Implementations are the PostgreSQL store
// (postgres.Options.ListenConn) and store/redis. The suite is conformance.TestWaker.
type Waker interface {
	// Wake notifies all processes, this one included, of new work. note gives them its kind, and who made it:
	// at most 200 bytes. A waker that cannot reach the others answers fault.Unavailable.
	Wake(ctx context.Context, note string) error
	// Wakes listens and calls f, from one goroutine, for every Wake. It calls f with an empty note as soon as
	// it listens, for wake-ups that it missed before. When ctx ends it returns nil. When it can no longer
	// listen, it returns fault.Unavailable and is called again.
	Wakes(ctx context.Context, f func(note string)) error
}

// Limiter is a rate limiter, such as the one of store/redis that processes share. Without one, each
// process limits for itself. The suite is conformance.TestLimiter.
type Limiter interface {
	// Allow takes one token from the bucket of a key, which is full at first and refills at perSecond up to
	// burst; both are at least 1. If there is none, ok is false, and there is one after retryAfterSeconds,
	// rounded up. A limiter that cannot count returns fault.Unavailable within a moment; the caller decides
	// what that means.
	Allow(ctx context.Context, key string, perSecond, burst int) (ok bool, retryAfterSeconds int, err error)
}

// AttentionReader is a store that counts the objects of health.Report.Attention. If the store is no
// AttentionReader, Health shows none.
type AttentionReader interface {
	// Attention returns one entry, without its Message, for each object, network, status and reason, in any
	// order. It counts
	//
	//   - the settlements that are held, since HeldSince, or have failed for another reason than payment_orphaned and
	//     replanning, since FailedAt;
	//   - the payouts that failed at or after failedSince, since FailedAt, except canceled ones;
	//   - the pending and releasing settlements, and the pending and processing payouts, that have a WaitingSince. The
	//     reason is the part of ReasonMessage before its first colon.
	Attention(ctx context.Context, failedSince time.Time) ([]health.Attention, error)
}
