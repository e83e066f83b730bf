package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
)

// How often each kind of work is polled. Wake-ups are hints; polling is the truth.
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

// Step does one bounded batch of each kind of work, one after the other, and reports whether it found work.
// It is what Run repeats, for a host that schedules the work itself. Old records are deleted once a minute,
// and in every Step while there are more. If one kind fails, the others still run; their errors are joined.
// This process keeps the leases of the networks until it no longer calls Step.
//
// Errors: fault.State while another Run or Step of this engine is running; fault.Unavailable
// (signer_mismatch) when Config.Signer is not the one that made the addresses on record, which the error
// names.
func (e *Engine) Step(ctx context.Context) (did bool, err error) {
	if !e.running.TryLock() {
		return false, fault.New(fault.State, "already_running", "this engine is already running")
	}
	defer e.running.Unlock()

	defer e.Transactions.Begin()()

	if err := e.beginEpoch(ctx); err != nil && e.config.Epoch > 0 {
		return false, err
	}

	if err := e.refuseWrongSeed(ctx); err != nil {
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

		if failed != nil && !w.healthOnly {
			err = errors.Join(err, fmt.Errorf("%s: %w", w.name, failed))
		}
	}

	return did, err
}

// Follow reads one batch of a network's blocks and stores it, like one of the steps of Run.
func (e *Engine) Follow(ctx context.Context, network string) (did bool, err error) {
	for _, f := range e.followers {
		if f.Driver.Network().Slug == network {
			return f.Step(ctx)
		}
	}

	return false, fault.New(fault.NotFound, "network_unknown", "network %q is not enabled here", network)
}

// runStep runs one step and turns a panic into an error: one damaged record must not end the process
// of the host.
func (e *Engine) runStep(ctx context.Context, w worker) (did bool, err error) {
	defer func() {
		if ctx.Err() == nil {
			e.work.done(w.name, w.every(), e.config.Now(), did, err)
		}
	}()

	defer hostcall.Recover(ctx, e.config.Log, w.name, &err)

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

// withNode runs a step that takes leases and calls a node. It ends the step if the node hangs. After an
// error, the node has to answer first: so a process without a node takes no lease from processes that have
// one.
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

// prune deletes expired events, deliveries and idempotency rows in small batches. If one kind fails, the
// other is still pruned.
func (e *Engine) prune(ctx context.Context) (did bool, err error) {
	sent, sentErr := e.Deliverer.Prune(ctx)
	answered, answeredErr := requestkey.Prune(
		ctx, requestkey.Config[Tx]{Update: e.Update, Now: e.config.Now},
	)

	return sent || answered, errors.Join(sentErr, answeredErr)
}

// Resume is payments.Engine.Resume.
func (e *Engine) Resume(ctx context.Context, network string) error {
	driver, err := e.Networks.Driver(network)
	if err != nil {
		return err
	}

	passed, err := follow.Resume(
		ctx, view[scan.Tx]{e.records(), e, func(tx Tx) scan.Tx { return tx }}, driver, e.config.Now(),
	)
	if err != nil {
		return err
	}

	if passed != nil {
		e.config.Log.WarnContext(
			ctx,
			"the network is read on above blocks that no node has; what was paid in them shows as balances alone",
			"network",
			network,
			"from_height",
			passed.Next,
			"to_height",
			passed.To,
		)
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

// runTogether is how many wallets of a network Run works on at a time: each waits for the store and the node in turns.
const runTogether = 8

// worker does work at its pace, and at once when it is woken for its kinds on its network. step does one
// bounded batch and reports whether more may be waiting.
type worker struct {
	name string
	pace time.Duration
	// paceNow returns the current pace if it varies; pace is then the longest. Defaults to pace.
	paceNow func() time.Duration
	// atRest reports, after a step that did something, that no work is left. Defaults to never.
	atRest  func() bool
	step    func(ctx context.Context) (did bool, err error)
	kinds   kinds
	network string
	// seldom keeps the pace in Step too, because no other work waits for it.
	seldom bool
	// healthOnly makes Health name a failure, and Step not return it: no work was left undone.
	healthOnly bool
}

// every returns the current pace of a worker.
func (w worker) every() time.Duration {
	if w.paceNow != nil {
		return w.paceNow()
	}

	return w.pace
}

// workers returns the workers of Run. No commit wakes work that only the clock makes due. together is how
// many wallets of a network send at a time, and for how many accounts releases are planned.
func (e *Engine) workers(together int) []worker {
	all := []worker{
		{
			name: health.Heartbeat,
			pace: heartbeat.NewsPace,
			step: func(ctx context.Context) (bool, error) { return false, e.heartbeat.Beat(ctx) },
		},
		{
			name: health.Store,
			pace: paceStore,
			step: func(ctx context.Context) (bool, error) { return false, e.probeStore(ctx) },
		},
		e.clockWorker(),
	}

	for i, f := range e.followers {
		all = append(all, e.networkWorkers(f, e.bumps[i], together)...)
	}

	return append(all,
		worker{name: "invoices", pace: paceWorkers, step: e.expire},
		worker{name: "backlog", pace: paceBacklog, step: e.countBacklog},
		worker{
			name:   health.Rates,
			pace:   paceRates,
			step:   func(ctx context.Context) (bool, error) { return false, e.checkRates(ctx) },
			seldom: true,

			healthOnly: true,
		},
		worker{
			name:   "secret key",
			pace:   paceStore,
			step:   func(ctx context.Context) (bool, error) { return false, e.checkSecretKey(ctx) },
			seldom: true,
		},
		worker{
			name:   "signer",
			pace:   pacePrune,
			step:   func(ctx context.Context) (bool, error) { return false, e.checkSeeds(ctx) },
			seldom: true,
		},
		worker{name: "attention", pace: paceStore, step: e.countAttention, seldom: true},
		worker{name: "networks that are not served", pace: pacePrune, step: e.failStale, seldom: true},
		worker{name: "retention", pace: pacePrune, step: e.prune, seldom: true},
	)
}

// networkWorkers returns the workers of one network.
func (e *Engine) networkWorkers(f *follow.Follower, bumps *bumpLoop, together int) []worker {
	n := f.Driver.Network()

	all := []worker{
		{
			name:    "follower of " + n.Slug,
			pace:    maxPace,
			paceNow: f.LookEvery,
			atRest:  f.AtRest,
			step:    f.Step,
			kinds:   reading,
		},
		{
			name:    outboxOf(n.Slug),
			pace:    maxPace,
			paceNow: f.LookEvery,
			step:    func(ctx context.Context) (bool, error) { return e.send(ctx, f.Driver, bumps, together) },
			kinds:   sending,
		},
		{
			name: "balances of " + n.Slug,
			pace: paceBalance,
			step: func(ctx context.Context) (bool, error) {
				return false, e.Transactions.RefreshBalances(ctx, n.Slug)
			},
			kinds: sending,
		},
		{
			name: "unexplained balances of " + n.Slug,
			pace: paceWorkers,
			step: func(ctx context.Context) (bool, error) { return e.checkBalances(ctx, f) },
		},
		{
			name:   "nodes of " + n.Slug,
			pace:   paceNodes,
			step:   func(ctx context.Context) (bool, error) { return e.compareNodes(ctx, f.Driver) },
			seldom: true,
		},
		{
			name:  "retries of " + n.Slug,
			pace:  paceWorkers,
			step:  func(ctx context.Context) (bool, error) { return e.retry(ctx, n.Slug) },
			kinds: retrying,
		},
		{
			name:    settlementsOf(n.Slug),
			pace:    maxPace,
			paceNow: f.LookEvery,
			step:    func(ctx context.Context) (bool, error) { return e.release(ctx, f.Driver, together) },
			kinds:   settling,
		},
	}

	for i := range all {
		all[i].network = n.Slug
	}

	return all
}

func (e *Engine) clockWorker() worker {
	return worker{
		name: "clock",
		pace: paceClock,
		step: func(ctx context.Context) (bool, error) { return false, e.checkClock(ctx) },
	}
}
