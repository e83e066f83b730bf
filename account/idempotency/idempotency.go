// Package idempotency declares the stored record of a request, so that a repeated request with the same
// Idempotency-Key gets the stored answer and has no second effect. Stores implement Reader and Tx; the code
// that runs a request once is internal.
package idempotency

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/event"
)

// Key identifies a request within an account and mode.
type Key struct {
	Owner event.Owner
	Key   string
}

// Record is a claimed key with its answer.
type Record struct {
	Key
	// KeyID is the API key that made the request.
	KeyID string
	// Scopes are Request.Permissions of that API key; for requests that send money they include its
	// destinations. Another key that has all of them may read the answer; "kind:*" stands for all that begin
	// with "kind:".
	Scopes []string
	// Fingerprint is SHA-256 over method, path and body (canonical JSON).
	Fingerprint [32]byte
	// Status and SealedBody are the answer. Status is an HTTP status, 0 until the answer is stored.
	Status     int
	SealedBody []byte
	CreatedAt  time.Time
}

// Reader reads stored answers.
type Reader interface {
	// IdempotencyRecord returns the record of a key; ok is false, and r zero, when there is none.
	IdempotencyRecord(ctx context.Context, k Key) (r Record, ok bool, err error)
}

// Tx claims and prunes keys in a store's transaction.
type Tx interface {
	Reader
	// ClaimIdempotencyKey inserts the record before anything else that the transaction writes or locks. A
	// record created at stale or before counts as absent and is replaced, by one claim only; a record with a
	// zero CreatedAt does not. While another transaction holds the claim, it waits up to wait.
	//
	//   - fault.Duplicate: the key has a record.
	//   - fault.Unavailable with code claim_busy: the wait is over.
	//
	// With a zero stale, a store may send the claim with the transaction's next statements: a lock, or the
	// writes at its end. The error is then that of the lock or of the commit; a Duplicate has the code
	// claim_taken. The transaction is then a store.Flusher.
	ClaimIdempotencyKey(ctx context.Context, r Record, stale time.Time, wait time.Duration) error
	// PutIdempotencyAnswer stores the status and the sealed body of a claimed key.
	PutIdempotencyAnswer(ctx context.Context, r Record) error
	// PruneIdempotencyKeys deletes up to limit records created before the time, oldest first, and returns
	// their number. Records created at exactly that time stay. A limit of 0 or less is no limit.
	PruneIdempotencyKeys(ctx context.Context, before time.Time, limit int) (int, error)
}
