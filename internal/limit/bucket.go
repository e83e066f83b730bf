package limit

// This file holds token buckets.

import (
	"context"
	"sync"
	"time"
)

// bucketsKept bounds the memory of Buckets, which keep at most about twice as many buckets.
const bucketsKept = 50_000

// Buckets is a store.Limiter of one process: token buckets, of which it forgets the least used. A forgotten
// bucket is full again, so its key may have one burst more. It is safe for concurrent use.
type Buckets struct {
	now func() time.Time

	mu sync.Mutex
	// A bucket is kept as the time at which it is full again. It has a token if taking one moves that time at
	// most as far ahead as a whole burst takes to refill.
	young, aged map[string]time.Time
}

// NewBuckets returns full buckets that refill by a clock.
func NewBuckets(now func() time.Time) *Buckets { return &Buckets{now: now} }

// Allow takes one token; see store.Limiter. A rate or burst below 1 counts as 1. The seconds to
// wait are rounded up.
func (b *Buckets) Allow(
	_ context.Context,
	key string,
	perSecond, burst int,
) (ok bool, retryAfterSeconds int, err error) {
	token := time.Second / time.Duration(max(perSecond, 1))

	b.mu.Lock()
	defer b.mu.Unlock()

	now := b.now()

	full := b.full(key)
	if full.Before(now) {
		full = now
	}

	whole := time.Duration(max(burst, 1)) * token
	if empty := now.Add(whole); full.After(empty) { // the burst was larger before
		full = empty
		b.young[key] = empty
	}

	after := full.Add(token)
	if over := after.Sub(now) - whole; over > 0 {
		return false, int((over + time.Second - 1) / time.Second), nil
	}

	b.young[key] = after

	return true, 0, nil
}

// Wait returns the seconds until the bucket has a token, rounded up; 0 if it has one. It takes none.
func (b *Buckets) Wait(key string, perSecond, burst int) (seconds int) {
	token := time.Second / time.Duration(max(perSecond, 1))

	b.mu.Lock()
	defer b.mu.Unlock()

	full, ok := b.young[key]
	if !ok {
		full = b.aged[key]
	}

	now := b.now()
	if full.Before(now) {
		return 0
	}

	whole := time.Duration(max(burst, 1)) * token
	if over := full.Add(token).Sub(now) - whole; over > 0 {
		return int((over + time.Second - 1) / time.Second)
	}

	return 0
}

// full returns when a bucket is full. It moves the bucket to the young ones, because it is in use.
func (b *Buckets) full(key string) time.Time {
	full, ok := b.young[key]
	if ok {
		return full
	}

	full = b.aged[key] // the zero time is long ago, so a new bucket is full
	if b.young == nil || len(b.young) >= bucketsKept {
		b.young, b.aged = make(map[string]time.Time), b.young
	}

	b.young[key] = full

	return full
}
