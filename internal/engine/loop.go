package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/deliver"
)

// Run follows the networks, expires invoices, releases settlements, sends transactions and delivers
// webhooks until ctx ends. When it returns, nothing of it runs any more and its leases are released.
// It returns nil when ctx ended.
//
// Errors: fault.State while another Run or Step of this engine is running; fault.Unavailable (signer_mismatch) when
// Config.Signer is not the one that made the addresses on record, which the error names.
func (e *Engine) Run(ctx context.Context) error {
	if !e.running.TryLock() {
		return fault.New(fault.State, "already_running", "this engine is already running")
	}
	defer e.running.Unlock()

	defer e.Transactions.Begin()()
	defer e.work.run()()

	if err := e.awaitEpoch(ctx); err != nil {
		return nil // the context ended
	}

	if err := e.refuseWrongSeed(ctx); err != nil {
		return err
	}

	// Check the clock's skew before writing timestamps.
	if _, err := e.runStep(ctx, e.clockWorker()); err != nil {
		e.config.Log.WarnContext(ctx, "the clock was not compared, or is wrong", "error", err)
	}

	var wg sync.WaitGroup

	for _, w := range e.workers(runTogether) {
		asleep := e.wakes.subscribe(w.kinds, w.network)

		wg.Go(func() {
			defer e.wakes.unsubscribe(asleep)

			e.loop(ctx, w, asleep.wake)
		})
	}

	wg.Go(func() {
		if err := e.Deliverer.Run(ctx); err != nil && ctx.Err() == nil {
			e.config.Log.ErrorContext(ctx, "webhook delivery stopped", "error", err)
		}
	})

	wg.Go(func() {
		e.loop(ctx, worker{name: "addresses", pace: pacePrune, step: e.addresses.Step}, e.addresses.Low())
	})

	if e.config.Waker != nil {
		wg.Go(func() { e.listen(ctx) })
	}

	for _, f := range e.followers {
		block := wakeUp{f.Driver.Network().Slug: reading}

		wg.Go(func() {
			e.watchWalletsEarly(ctx, f.Driver.Network())
			f.Listen(ctx, func() {
				if !f.IsFast() {
					e.wakeHere(block)
				}
			})
		})
	}

	wg.Wait()
	e.wakes.stop()

	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()

	for _, f := range e.followers {
		if err := f.Release(done); err != nil {
			e.config.Log.WarnContext(
				done, "a lease could not be given back; another process waits until it is free",
				"error", err,
			)
		}
	}

	if err := e.heartbeat.Stop(done); err != nil {
		e.config.Log.WarnContext(
			done, "the heartbeat could not be given up; other processes wait until it stood still",
			"error", err,
		)
	}

	return nil
}

// pauses returns two durations after a look-up that found nothing and lasted took: how long a worker ignores
// wake-ups, and when it looks again. Workers that call a node keep their pace, because took is mostly the
// node's time. Blocks are looked up at a steady pace, even after a slow look-up.
func (w worker) pauses(took time.Duration) (ignore, again time.Duration) {
	switch {
	case w.kinds&reading != 0:
		return 0, max(0, w.every()-took)
	case w.kinds&(sending|settling) == 0:
		return 0, w.every()
	}

	return deliver.Rest(took, w.every())
}

// loop runs a worker's steps until ctx ends: at once while there is work, otherwise at the worker's pace or
// on a wake-up. After errors it backs off exponentially.
func (e *Engine) loop(ctx context.Context, w worker, wake <-chan struct{}) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = max(w.every()/4, minPace), 30*time.Second

	timer := time.NewTimer(0)
	defer timer.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-wake:
		}

		began := time.Now()

		did, err := e.runStep(ctx, w)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			retryIn := pause.NextBackOff()
			if errors.Is(err, fault.Stopped) {
				retryIn = pause.MaxInterval
			}

			e.config.Log.WarnContext(
				ctx, "work failed; it is tried again",
				"worker", w.name, "again_in", retryIn.Round(time.Millisecond), "error", err,
			)
			// Wake-ups meanwhile are dropped: the next step looks for all work anyway.
			if !sleep(ctx, retryIn) {
				return
			}

			drain(wake)
			timer.Reset(0)
		case did && (w.atRest == nil || !w.atRest()):
			pause.Reset()
			timer.Reset(0)
		default:
			pause.Reset()

			rest, again := w.pauses(time.Since(began))
			if rest > 0 && !sleep(ctx, rest) {
				return
			}

			timer.Reset(again - rest)
		}
	}
}

// sleep waits for d and reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}
