package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/follow"
)

// How often each kind of work is looked for when nobody wakes it. Wake-ups are hints; this is the truth.
const (
	paceWorkers = time.Second
	paceBalance = 15 * time.Second
	pacePrune   = time.Minute
	minPace     = 100 * time.Millisecond
	maxPace     = 15 * time.Second
)

// worker is one kind of work: a bounded step that says whether more may be waiting.
type worker struct {
	name string
	pace time.Duration
	step func(ctx context.Context) (did bool, err error)
}

// Run follows the networks, expires invoices, releases settlements, sends transactions and delivers
// webhooks until ctx ends; when it returns, nothing of it runs any more and its leases are given back.
// A second Run at the same time answers fault.State. The error of an orderly end is nil.
func (e *Engine) Run(ctx context.Context) error {
	if !e.running.TryLock() {
		return fault.New(fault.State, "already_running", "this engine is already running")
	}
	defer e.running.Unlock()

	var wg sync.WaitGroup

	for _, w := range e.workers() {
		wake := e.wakes.subscribe()

		wg.Go(func() {
			defer e.wakes.unsubscribe(wake)

			e.loop(ctx, w, wake)
		})
	}

	wg.Go(func() {
		if err := e.Deliverer.Run(ctx); err != nil && ctx.Err() == nil {
			e.config.Log.ErrorContext(ctx, "webhook delivery stopped", "error", err)
		}
	})

	if e.config.Waker != nil {
		wg.Go(func() { e.listen(ctx) })
	}

	wg.Wait()
	e.wakes.stop()

	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()

	for _, f := range e.followers {
		if err := f.Release(done); err != nil {
			e.config.Log.WarnContext(
				done, "a lease could not be given back; another process waits for its deadline",
				"error", err,
			)
		}
	}

	return nil
}

func (e *Engine) workers() []worker {
	var all []worker

	for i, f := range e.followers {
		n := f.Driver.Network()
		pace := min(max(n.BlockTime/4, minPace), maxPace)
		all = append(
			all,
			worker{"follower of " + n.Slug, pace, f.Step},
			worker{
				"outbox of " + n.Slug,
				pace,
				func(ctx context.Context) (bool, error) { return e.send(ctx, n.Slug, e.bumps[i]) },
			},
			worker{
				"balances of " + n.Slug,
				paceBalance,
				func(ctx context.Context) (bool, error) { return false, e.Transactions.RefreshBalances(ctx, n.Slug) },
			},
			worker{"deposits of " + n.Slug, paceBalance, e.sweeps[i].step},
			worker{
				"retries of " + n.Slug,
				paceWorkers,
				func(ctx context.Context) (bool, error) { return e.retry(ctx, n.Slug) },
			},
			worker{
				"settlements of " + n.Slug,
				pace,
				func(ctx context.Context) (bool, error) { return e.Sweeper.Step(ctx, n.Slug) },
			},
		)
	}

	return append(all,
		worker{"invoices", paceWorkers, e.Ingester.Step},
		worker{"retention", pacePrune, e.prune},
	)
}

// Step does one bounded batch of each kind of work, one after the other, and reports whether any of
// them found something to do: what Run does over and over, for a host that decides itself when work
// is done. Work that fails does not keep the other kinds back; the errors come back joined. Beside
// Run or another Step it answers fault.State. The networks it followed stay this process's until
// their leases run out.
func (e *Engine) Step(ctx context.Context) (did bool, err error) {
	if !e.running.TryLock() {
		return false, fault.New(fault.State, "already_running", "this engine is already running")
	}
	defer e.running.Unlock()

	for _, w := range append(e.workers(), worker{name: "webhooks", step: e.Deliverer.Step}) {
		some, failed := e.step(ctx, w)
		did = did || some

		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", w.name, failed))
		}
	}

	return did, err
}

// loop steps until ctx ends: at once while there is work, at the worker's pace or a wake-up when there is
// none, with growing pauses after errors.
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

		did, err := e.step(ctx, w)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			again := pause.NextBackOff()
			if errors.Is(err, fault.Stopped) {
				again = pause.MaxInterval
			}

			e.config.Log.WarnContext(
				ctx, "work failed; it is tried again",
				"worker", w.name, "again_in", again.Round(time.Millisecond), "error", err,
			)
			// Deaf to wake-ups: what they are about was going to be looked at anyway.
			if !rest(ctx, again) {
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

// rest waits, and reports false when ctx ended first.
func rest(ctx context.Context, d time.Duration) bool {
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

// step runs one step and turns a panic into an error: one damaged record must not end the process
// of the host.
func (e *Engine) step(ctx context.Context, w worker) (did bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.config.Log.ErrorContext(
				ctx, "a worker panicked", "worker", w.name, "panic", fmt.Sprint(p),
				"stack", string(debug.Stack()),
			)
			did, err = false, fmt.Errorf("%s panicked: %v", w.name, p)
		}
	}()

	return w.step(ctx)
}

// send queues what lifts payments, and moves what is to be sent.
func (e *Engine) send(ctx context.Context, network string, l *bumpLoop) (did bool, err error) {
	_, liftErr := l.step(ctx)
	did, err = e.Transactions.Step(ctx, network)

	return did, errors.Join(err, liftErr)
}

// prune forgets what is older than it has to be kept, in small batches. What cannot be forgotten
// does not keep the rest.
func (e *Engine) prune(ctx context.Context) (did bool, err error) {
	sent, sentErr := e.Deliverer.Prune(ctx)
	answered, answeredErr := idempotency.Prune(
		ctx, idempotency.Config[Tx]{Update: e.Update, Now: e.config.Now},
	)

	return sent || answered, errors.Join(sentErr, answeredErr)
}

// Health reads how every network is doing.
func (e *Engine) Health(ctx context.Context) (health.Report, error) {
	var h health.Report

	for _, f := range e.followers {
		slug := f.Driver.Network().Slug

		c, _, err := e.config.Store.Cursor(ctx, slug)
		if err != nil {
			return health.Report{}, err
		}

		h.Networks = append(h.Networks, health.Network{
			Network:  slug,
			Height:   c.At.Height,
			Tip:      c.Tip.Height,
			Behind:   c.Tip.Height - min(c.Tip.Height, c.At.Height),
			Stopped:  c.Stopped,
			ReadAt:   c.UpdatedAt,
			Follower: f.Health(),
		})
	}

	return h, nil
}

// Resume lets a network that was stopped be read again, after a person looked into the reason that Health
// names. What the node says is then trusted anew, a fork below finality included.
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

// Check asks every driver that can (evm.Driver and others) whether its node is the network it is
// configured to be.
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
