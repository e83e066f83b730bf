package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
)

// How often each kind of work is looked for when nobody wakes it. Wake-ups are hints; this is the truth.
const (
	paceWorkers = time.Second
	paceBalance = 15 * time.Second
	pacePrune   = time.Minute
	paceStore   = 15 * time.Second
	paceClock   = 15 * time.Second
	// Deliverer.Count has a pace of its own.
	paceBacklog = 5 * time.Second
	minPace     = 100 * time.Millisecond
	maxPace     = 15 * time.Second
)

// Run follows the networks, expires invoices, releases settlements, sends transactions and delivers
// webhooks until ctx ends. When it returns, nothing of it runs any more and its leases are released.
// It returns nil when ctx ended.
//
// Errors: fault.State while another Run or Step of this engine is running.
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

	// Nothing is dated before the clock was compared.
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

		wg.Go(func() { f.Listen(ctx, func() { e.wakeHere(block) }) })
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

// Step does one bounded batch of each kind of work, one after the other, and reports whether any found
// something to do. It is what Run repeats, for a host that schedules the work itself. Old records are deleted
// once a minute, and in every Step while there are more. A kind that fails does not hold up the others; their
// errors are joined. The leases of the networks stay with this process until
// it no longer calls Step.
//
// Errors: fault.State while another Run or Step of this engine is running.
func (e *Engine) Step(ctx context.Context) (did bool, err error) {
	if !e.running.TryLock() {
		return false, fault.New(fault.State, "already_running", "this engine is already running")
	}
	defer e.running.Unlock()

	defer e.Transactions.Begin()()

	if err := e.beginEpoch(ctx); err != nil {
		return false, err
	}

	if e.steps == nil {
		e.steps = append(e.workers(1), worker{name: "webhooks", step: e.Deliverer.Step})
	}

	for _, w := range e.steps {
		if w.seldom && e.work.isRecent(w.name, w.pace, e.config.Now()) {
			continue
		}

		some, failed := e.runStep(ctx, w)
		did = did || some

		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", w.name, failed))
		}
	}

	return did, err
}

// Follow reads one batch of a network's blocks and stores it, as one of the steps of Run does.
func (e *Engine) Follow(ctx context.Context, network string) (did bool, err error) {
	for _, f := range e.followers {
		if f.Driver.Network().Slug == network {
			return f.Step(ctx)
		}
	}

	return false, fault.New(fault.NotFound, "network_unknown", "network %q is not enabled here", network)
}

// loop runs a worker's steps until ctx ends: at once while there is work, otherwise at the worker's pace or a
// wake-up. After errors it backs off exponentially.
func (e *Engine) loop(ctx context.Context, w worker, wake <-chan struct{}) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = max(w.pace/4, minPace), 30*time.Second

	timer := time.NewTimer(0)
	defer timer.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-wake:
		}

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
			// Wake-ups meanwhile are dropped: the next step looks at all work anyway.
			if !sleep(ctx, retryIn) {
				return
			}

			drain(wake)
			timer.Reset(0)
		case did:
			pause.Reset()
			timer.Reset(0)
		default:
			pause.Reset()
			timer.Reset(w.pace)
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

// runStep runs one step and turns a panic into an error: one damaged record must not end the process
// of the host.
func (e *Engine) runStep(ctx context.Context, w worker) (did bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.config.Log.ErrorContext(
				ctx, "a worker panicked", "worker", w.name, "panic", fmt.Sprint(p),
				"stack", string(debug.Stack()),
			)
			did, err = false, fmt.Errorf("%s panicked: %v", w.name, p)
		}

		if ctx.Err() == nil {
			e.work.done(w.name, w.pace, e.config.Now(), did, err)
		}
	}()

	return w.step(ctx)
}

// outboxOf and settlementsOf name work in the log and in Health.
func outboxOf(network string) string      { return "outbox of " + network }
func settlementsOf(network string) string { return "settlements of " + network }

// send queues due CPFP bumps, then sends and tracks our own transactions of a network.
func (e *Engine) send(
	ctx context.Context,
	driver chain.Driver,
	l *bumpLoop,
	together int,
) (did bool, err error) {
	network := driver.Network().Slug

	return e.withNode(ctx, outboxOf(network), driver, func(ctx context.Context) (bool, error) {
		_, bumpErr := l.bumpDue(ctx)
		did, err := e.Transactions.StepTogether(ctx, network, together)

		return did, errors.Join(err, bumpErr)
	})
}

// release plans and starts releases of a network.
func (e *Engine) release(ctx context.Context, driver chain.Driver, together int) (did bool, err error) {
	network := driver.Network().Slug

	return e.withNode(ctx, settlementsOf(network), driver, func(ctx context.Context) (bool, error) {
		return e.Sweeper.StepTogether(ctx, network, together)
	})
}

// withNode runs a step of work that takes leases and asks a node. A node that hangs ends it, and after an error
// the node has to answer first: a process without a node takes no lease from those that have one.
func (e *Engine) withNode(
	ctx context.Context,
	name string,
	driver chain.Driver,
	step func(ctx context.Context) (bool, error),
) (did bool, err error) {
	if e.work.failing(name) {
		if err := follow.Answers(ctx, driver); err != nil {
			return false, err
		}
	}

	watched, end := follow.WhileAnswering(ctx, driver)
	defer func() { _ = end(nil) }()

	did, err = step(watched)

	return did, end(err)
}

// expire expires invoices by the clock. A process whose clock is wrong leaves them to the others.
func (e *Engine) expire(ctx context.Context) (did bool, err error) {
	if err := e.clock.check(); err != nil {
		return false, err
	}

	return e.Ingester.Step(ctx)
}

// prune deletes expired events, deliveries and idempotency rows in small batches. One kind that fails does
// not hold up the other.
func (e *Engine) prune(ctx context.Context) (did bool, err error) {
	sent, sentErr := e.Deliverer.Prune(ctx)
	answered, answeredErr := requestkey.Prune(
		ctx, requestkey.Config[Tx]{Update: e.Update, Now: e.config.Now},
	)

	return sent || answered, errors.Join(sentErr, answeredErr)
}

// Resume restarts a stopped network, after a person looked into the reason that Health names. What the node
// returns is then trusted anew, a fork below finality included.
func (e *Engine) Resume(ctx context.Context, network string) error {
	if err := follow.Resume(
		ctx, view[scan.Tx]{e.config.Store, e, func(tx Tx) scan.Tx { return tx }}, network,
		e.config.Now(),
	); err != nil {
		return err
	}

	e.Wake()

	return nil
}

// Check verifies with every driver that is a chain.Checker that its node serves the configured network, and
// returns the joined errors.
func (e *Engine) Check(ctx context.Context) error {
	var all []error

	for _, d := range e.Networks.Drivers() {
		if c, ok := d.(chain.Checker); ok {
			if err := c.Check(ctx); err != nil {
				all = append(all, err)
			}
		}
	}

	return errors.Join(all...)
}
