package requestkey

import (
	"context"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
)

// Running has the keys whose requests run in this process. A competing request waits at most Wait for one of
// them, even if the store has a single writer and would make it queue. The zero value is ready.
type Running struct {
	mu   sync.Mutex
	keys map[idempotency.Key]chan struct{} // closed when the request ends
	// recent and older are keys whose requests ended; older is dropped when recent is full.
	recent, older map[idempotency.Key]struct{}
}

// rememberMost bounds how many keys recent and older hold each.
const rememberMost = 1 << 14

// saw reports whether a request with the key runs, or ended here recently. A nil Running may have seen any.
func (r *Running) saw(k idempotency.Key) bool {
	if r == nil {
		return true
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	_, runs := r.keys[k]
	_, recent := r.recent[k]
	_, older := r.older[k]

	return runs || recent || older
}

// remember adds a key to the seen ones. The caller holds r.mu.
func (r *Running) remember(k idempotency.Key) {
	if r.recent == nil || len(r.recent) >= rememberMost {
		r.recent, r.older = map[idempotency.Key]struct{}{}, r.recent
	}

	r.recent[k] = struct{}{}
}

// enter waits at most Wait until no other request with the key runs, and marks it as running. leave ends that
// mark; it is nil if the wait is over. A nil Running marks nothing.
func (r *Running) enter(ctx context.Context, k idempotency.Key) (leave func(), err error) {
	if r == nil {
		return func() {}, nil
	}

	timer := time.NewTimer(Wait)
	defer timer.Stop()

	for {
		ended, taken := r.take(k)
		if taken {
			return func() { r.leave(k) }, nil
		}

		select {
		case <-ended:
		case <-timer.C:
			return nil, inProgress()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take marks the key as running, or returns the channel that is closed when the other request ends.
func (r *Running) take(k idempotency.Key) (ended chan struct{}, taken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if ended, ok := r.keys[k]; ok {
		return ended, false
	}

	if r.keys == nil {
		r.keys = map[idempotency.Key]chan struct{}{}
	}

	r.keys[k] = make(chan struct{})

	return nil, true
}

// leave ends the mark of take.
func (r *Running) leave(k idempotency.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()

	close(r.keys[k])
	delete(r.keys, k)
	r.remember(k)
}
