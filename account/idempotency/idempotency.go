// Package idempotency remembers answers, so that a request that is sent twice is carried out once.
//
// A claim is the first write of the transaction that does the work, and the answer its last: a crash in
// between leaves neither. Rivals with the same key wait on the claim's unique row. Answers are sealed
// with Config.SecretKey before they are stored.
package idempotency

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/event"
)

// TTL is how long an answer is remembered.
const TTL = 24 * time.Hour

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
	// Scopes are the permissions of that API key: another key that has all of them may have the answer.
	Scopes []string
	// Fingerprint is SHA-256 over method, path and body.
	Fingerprint [32]byte
	// Status and SealedBody are the answer; Status is 0 until it is stored.
	Status     int
	SealedBody []byte
	CreatedAt  time.Time
}

// Reader reads stored answers.
type Reader interface {
	// IdempotencyRecord returns the record of a key; ok is false when there is none.
	IdempotencyRecord(ctx context.Context, k Key) (r Record, ok bool, err error)
}

// Tx is what a claim asks of a transaction.
type Tx interface {
	Reader
	// ClaimIdempotencyKey inserts the record at once (it is not buffered) or fails with
	// fault.Duplicate. A record that was created at stale or before, and has a time at all, counts
	// as none and is replaced, by one claim only. While another transaction holds the same claim it
	// waits up to wait, then fails with fault.Unavailable and code claim_busy.
	ClaimIdempotencyKey(ctx context.Context, r Record, stale time.Time, wait time.Duration) error
	// PutIdempotencyAnswer stores status and body of a claimed key.
	PutIdempotencyAnswer(ctx context.Context, r Record) error
	// PruneIdempotencyKeys deletes up to limit records created before t and returns how many.
	PruneIdempotencyKeys(ctx context.Context, before time.Time, limit int) (int, error)
}
