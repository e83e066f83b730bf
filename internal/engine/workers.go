package engine

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
)

// runTogether is how many wallets of a network Run works on at a time: each waits for the store and the node in turns.
const runTogether = 8

// worker does work at its pace, and at once when there is some of its kinds on its network. step does one bounded
// batch and reports whether more may be waiting.
type worker struct {
	name    string
	pace    time.Duration
	step    func(ctx context.Context) (did bool, err error)
	kinds   kinds
	network string
	// seldom keeps to the pace in Step too: nothing waits for it.
	seldom bool
}

// workers are those of Run. What only the clock makes due, no commit wakes. together is how many wallets of a network
// send at a time, and for how many accounts releases are planned.
func (e *Engine) workers(together int) []worker {
	all := []worker{
		{
			name: "heartbeat",
			pace: heartbeat.NewsPace,
			step: func(ctx context.Context) (bool, error) { return false, e.heartbeat.Beat(ctx) },
		},
		{
			name: "store",
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
		worker{name: "retention", pace: pacePrune, step: e.prune, seldom: true},
	)
}

// networkWorkers are those of one network.
func (e *Engine) networkWorkers(f *follow.Follower, bumps *bumpLoop, together int) []worker {
	n := f.Driver.Network()
	pace := min(max(n.BlockTime/4, minPace), maxPace)

	all := []worker{
		{
			name:  "follower of " + n.Slug,
			pace:  pace,
			step:  f.Step,
			kinds: reading,
		},
		{
			name:  outboxOf(n.Slug),
			pace:  pace,
			step:  func(ctx context.Context) (bool, error) { return e.send(ctx, f.Driver, bumps, together) },
			kinds: sending,
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
			name:  "retries of " + n.Slug,
			pace:  paceWorkers,
			step:  func(ctx context.Context) (bool, error) { return e.retry(ctx, n.Slug) },
			kinds: retrying,
		},
		{
			name:  settlementsOf(n.Slug),
			pace:  pace,
			step:  func(ctx context.Context) (bool, error) { return e.release(ctx, f.Driver, together) },
			kinds: settling,
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
