package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// This file holds wake-ups: hints that there is work, to the workers of this process and to other
// processes. Polling finds what a lost hint was about.

const (
	// maxProcess is the longest process name in bytes.
	maxProcess = 200
	// wakeGap is the least time between two wake-ups that this process publishes, and between two that
	// it handles. A burst of commits is one hint; a single hint is handled at once.
	wakeGap = 50 * time.Millisecond
	// wakeTimeout bounds the publishing of one.
	wakeTimeout = 5 * time.Second
)

// wakes holds the workers to wake in this process and the publishing of wake-ups to other processes.
type wakes struct {
	mu      sync.Mutex
	workers []chan struct{}
	// stopPublishing stops the publishing goroutine and published is closed when it has ended. Both are nil
	// while there is none. pending reports that a wake-up is to be published.
	stopPublishing context.CancelFunc
	published      chan struct{}
	pending        bool
}

// Wake wakes every worker of this process and publishes a wake-up to other processes through Config.Waker.
// It does not wait for either. A host calls it after it has committed what it made with UpdateIn.
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

// publishWake schedules a wake-up of the other processes. Its goroutine runs only while a wake-up is pending,
// so a process that serves requests without Run publishes too.
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

		sleep(ctx, pause)
	}
}

// more reports whether a wake-up is pending. When none is, or ctx has ended, it marks publishing as stopped.
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

// stop stops publishing and waits until its goroutine has ended.
func (w *wakes) stop() {
	w.mu.Lock()

	published := w.published
	if published != nil {
		w.stopPublishing()
	}
	w.mu.Unlock()

	if published != nil {
		<-published
	}
}

// listen handles the wake-ups of other processes until ctx ends, and reconnects when the connection is lost.
func (e *Engine) listen(ctx context.Context) {
	received := make(chan struct{}, 1)

	var followed sync.WaitGroup

	followed.Go(func() {
		for range received {
			e.wakeHere()
			sleep(ctx, wakeGap)
		}
	})
	defer followed.Wait()
	defer close(received)

	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = minPace, maxPace

	for {
		err := e.config.Waker.Wakes(ctx, func(from string) {
			if from == e.config.Process {
				return
			}

			pause.Reset()

			select {
			case received <- struct{}{}:
			default:
			}
		})
		if ctx.Err() != nil {
			return
		}

		retryIn := pause.NextBackOff()
		e.config.Log.WarnContext(
			ctx, "wake-ups of other processes are not heard; polling goes on",
			"again_in", retryIn.Round(time.Millisecond), "error", err,
		)

		if !sleep(ctx, retryIn) {
			return
		}
	}
}
