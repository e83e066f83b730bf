package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// This file holds wake-ups: hints that there is work, to the workers of this process and to other
// processes. What is lost of them, polling finds.

const (
	maxProcess = 200
	// wakeGap is the least time between two wake-ups that this process sends, and between two that
	// it follows: a burst of commits is one hint, and a hint alone is passed on at once.
	wakeGap = 50 * time.Millisecond
	// wakeTimeout bounds the sending of one.
	wakeTimeout = 5 * time.Second
)

// wakes is who is woken here, and the telling of the others.
type wakes struct {
	mu      sync.Mutex
	workers []chan struct{}
	// telling ends the goroutine that tells the others and told is closed when it has ended; both
	// are nil while there is none. again says that there is something to tell.
	stopPublishing context.CancelFunc
	published      chan struct{}
	pending        bool
}

// Wake has every worker of this process look for work now, and tells the other processes if
// Config.Waker can. It does not wait for that. A host calls it after it has committed what it made
// with UpdateIn.
func (e *Engine) Wake() {
	e.wakeHere()
	e.publishWake()
}

// wakeHere wakes this process only.
func (e *Engine) wakeHere() {
	e.streams.wake()
	e.Deliverer.Wake()
	e.wakes.mu.Lock()
	defer e.wakes.mu.Unlock()

	for _, w := range e.wakes.workers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (w *wakes) subscribe() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()

	c := make(chan struct{}, 1)
	w.workers = append(w.workers, c)

	return c
}

func (w *wakes) unsubscribe(c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.workers = slices.DeleteFunc(w.workers, func(other chan struct{}) bool { return other == c })
}

// tell has the other processes told soon. The goroutine that does it lives as long as there is
// something to tell, so that a process that only serves requests, without Run, tells the workers of
// the others too.
func (e *Engine) publishWake() {
	if e.config.Waker == nil {
		return
	}

	e.wakes.mu.Lock()
	defer e.wakes.mu.Unlock()

	e.wakes.pending = true
	if e.wakes.published == nil {
		ctx, cancel := context.WithCancel(context.Background())

		e.wakes.stopPublishing, e.wakes.published = cancel, make(chan struct{})
		go e.publishWakes(ctx)
	}
}

func (e *Engine) publishWakes(ctx context.Context) {
	for e.wakes.more(ctx) {
		limited, cancel := context.WithTimeout(ctx, wakeTimeout)
		err := e.config.Waker.Wake(limited, e.config.Process)

		cancel()

		pause := wakeGap

		if err != nil && ctx.Err() == nil {
			e.config.Log.WarnContext(
				ctx, "other processes were not told of work; they find it when they poll",
				"error", err,
			)

			pause = wakeTimeout
		}

		rest(ctx, pause)
	}
}

// more reports whether there is something to tell; when there is not, or ctx has ended, the telling is over.
func (w *wakes) more(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.pending && ctx.Err() == nil {
		w.pending = false
		return true
	}

	w.stopPublishing()
	close(w.published)
	w.stopPublishing, w.published, w.pending = nil, nil, false

	return false
}

// hush ends the telling and waits until it has.
func (w *wakes) stop() {
	w.mu.Lock()

	told := w.published
	if told != nil {
		w.stopPublishing()
	}
	w.mu.Unlock()

	if told != nil {
		<-told
	}
}

// listen follows the wake-ups of other processes until ctx ends, and listens again when the
// connection is lost.
func (e *Engine) listen(ctx context.Context) {
	heard := make(chan struct{}, 1)

	var followed sync.WaitGroup

	followed.Go(func() {
		for range heard {
			e.wakeHere()
			rest(ctx, wakeGap)
		}
	})
	defer followed.Wait()
	defer close(heard)

	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = minPace, maxPace

	for {
		err := e.config.Waker.Wakes(ctx, func(from string) {
			if from == e.config.Process {
				return
			}

			pause.Reset()

			select {
			case heard <- struct{}{}:
			default:
			}
		})
		if ctx.Err() != nil {
			return
		}

		again := pause.NextBackOff()
		e.config.Log.WarnContext(
			ctx, "wake-ups of other processes are not heard; polling goes on",
			"again_in", again.Round(time.Millisecond), "error", err,
		)

		if !rest(ctx, again) {
			return
		}
	}
}
