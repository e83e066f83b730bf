package requestkey

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// storeWait bounds how long a request waits for the store until it has claimed its key, over all its writes.
// A store with a single writer for all processes would otherwise make a competing request wait at each write,
// several times over.
type storeWait struct {
	mu   sync.Mutex
	left time.Duration
	// ended is set once a write was given up.
	ended bool
}

type waitKey struct{}

// errWaitOver ends the context of a write.
var errWaitOver = errors.New("the wait of a request with an Idempotency-Key is over")

// Bound returns a context for one write in the preparation of a request with an Idempotency-Key. The write
// must not make a competing request wait longer than Wait. Call end after the write. Other contexts are
// returned unchanged.
func Bound(ctx context.Context) (bound context.Context, end func()) {
	wait, ok := ctx.Value(waitKey{}).(*storeWait)
	if !ok {
		return ctx, func() {}
	}

	return wait.begin(ctx)
}

// begin returns a context that ends when the wait is over, unless end was called before.
func (w *storeWait) begin(ctx context.Context) (bound context.Context, end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()

	bound, cancel := context.WithCancelCause(ctx)
	began := time.Now()
	timer := time.AfterFunc(w.left, func() {
		w.giveUp()
		cancel(errWaitOver)
	})

	return bound, sync.OnceFunc(func() {
		timer.Stop()
		w.spend(time.Since(began))
	})
}

func (w *storeWait) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.ended = true
}

func (w *storeWait) spend(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.left = max(w.left-d, 0)
}

// over reports whether a write was given up.
func (w *storeWait) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.ended
}

// Wait is how long a request waits for another one with the same key, and the RetryAfter of its refusal.
const Wait = 2 * time.Second // spec D11.16

// inProgress returns the error of a key whose first request is still running.
func inProgress() error { // spec 7.2
	busy := fault.New(
		fault.Conflict, "idempotency_request_in_progress",
		"the first request with this Idempotency-Key is still running: send it again in a moment",
	)
	busy.RetryAfter = Wait

	return busy
}
