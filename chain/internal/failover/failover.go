// Package failover asks several nodes of one network until one answers. It serves the drivers that
// speak to nodes over HTTP.
//
// A Set asks its nodes in one of two orders. The fittest first suits a network whose answers name
// the block that they are of, as on EVM networks and Tron: going back to the preferred node as soon
// as it is well costs nothing. Where answers depend on what a node happens to have in its pool or
// ledger, as on Bitcoin and Solana, the one that answered last is kept to.
//
// failure.go holds the ways in which a node gives no usable answer, and what they come to in public
// words; node.go what is known of one node, and what of it may be said; config.go what the drivers'
// settings have in common.
package failover

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Set is the nodes of one network, at least one. N is a driver's endpoint that embeds Node.
type Set[N interface {
	comparable
	State() *Node
}] struct {
	Nodes   []N
	Network string // slug
	Log     *slog.Logger
	// Keep has the node asked first that answered last. Else it is the fittest: those that neither
	// rest after a failure nor lag come before the others, in the order of Nodes.
	Keep bool
	// Verify makes sure that a node serves the network; it is asked until it succeeded once.
	Verify func(ctx context.Context, n N) error
	// Reach asks for a node's newest height; below need it is ErrLagging. Without calls that need a
	// height it may be nil.
	Reach func(ctx context.Context, n N, need uint64) error
	// Seen is the newest height that any node showed.
	Seen atomic.Uint64

	kept  atomic.Int32
	turns atomic.Uint64
}

// longestWait is the most that a call waits between two rounds; a node that asks for more is not waited for.
const longestWait = 10 * time.Second

// Ask runs f against one node after another until one answers; then again after a pause, for so
// many rounds. A node is only asked once it is known to serve the network, and not for a height
// above its tip (need; 0 asks for none). An error of f that carries a fault word other than
// Unavailable is an answer and is returned as it is. Any other comes back as a fault, over the
// error of the node that may have known better than the others: one that failed, else ErrMissing,
// ErrPruned, ErrLagging, *Mismatch.
func (s *Set[N]) Ask(ctx context.Context, rounds int, need uint64, f func(context.Context, N) error) error {
	pause := backoff.ExponentialBackOff{
		InitialInterval:     250 * time.Millisecond,
		RandomizationFactor: 0.5,
		Multiplier:          2,
		MaxInterval:         5 * time.Second,
	}

	for round := 1; ; round++ {
		v, over, err := s.round(ctx, s.order(need), need, f)
		if over {
			return err
		}

		wait := max(pause.NextBackOff(), v.retryAfter)
		if v.final() || round >= rounds || wait > longestWait {
			return Fault(s.Network, v.err)
		}

		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Fault(s.Network, ctx.Err())
		}
	}
}

// AskOthers is one round for a second opinion: the node that would be asked first is asked last,
// and the others take turns.
func (s *Set[N]) AskOthers(ctx context.Context, need uint64, f func(context.Context, N) error) error {
	order := slices.Clone(s.order(need))

	first, others := order[0], order[1:]
	if n := uint64(len(others)); n > 0 {
		turn := s.turns.Add(1) % n
		order = slices.Concat(others[turn:], others[:turn], []N{first})
	}

	v, over, err := s.round(ctx, order, need, f)
	if over {
		return err
	}

	return Fault(s.Network, v.err)
}

// Doubt lets the node that is preferred now rest like one that failed.
func (s *Set[N]) Doubt(why string) {
	n := s.order(0)[0].State()
	n.failed()
	s.Log.Warn("node contradicts itself", "network", s.Network, "host", n.Host, "error", why)
}

// Vet makes sure, once per node, that it serves the network.
func (s *Set[N]) Vet(ctx context.Context, n N) error {
	state := n.State()
	state.mu.Lock()
	known := state.verified
	state.mu.Unlock()

	if known {
		return nil
	}

	err := s.Verify(ctx, n)
	if _, other := errors.AsType[*Mismatch](err); other {
		s.Log.ErrorContext(
			ctx, "node of another network", "network", s.Network, "host", state.Host, "error", err,
		)
	}

	if err != nil {
		return err
	}

	state.mu.Lock()
	defer state.mu.Unlock()

	state.verified = true

	return nil
}

// round asks nodes in an order; over says that err, which may be nil, is the answer.
func (s *Set[N]) round(
	ctx context.Context,
	order []N,
	need uint64,
	f func(context.Context, N) error,
) (v verdict, over bool, err error) {
	for _, n := range order {
		err := s.one(ctx, n, need, f)
		if err == nil || decided(err) {
			s.kept.Store(int32(slices.Index(s.Nodes, n)))
			return v, true, err
		}

		if ctx.Err() != nil {
			return v, true, Fault(s.Network, ctx.Err())
		}

		v.add(err)

		if hopeIn(err) == failed {
			s.Log.WarnContext(ctx, "node failed", "network", s.Network, "host", n.State().Host, "error", err)
		}
	}

	return v, false, nil
}

func (s *Set[N]) one(ctx context.Context, n N, need uint64, f func(context.Context, N) error) error {
	state := n.State()
	if barred := state.Barred(); barred != nil {
		return barred
	}

	err := s.Vet(ctx, n)
	if err == nil && need > state.KnownTip() {
		err = s.Reach(ctx, n, need)
	}

	if err == nil {
		err = f(ctx, n)
	}

	if failure, ok := errors.AsType[*Failure](err); ok {
		failure.RetryAfter = state.barred()
		state.failed()
	} else if err == nil {
		state.worked()
	}

	return err
}

func (s *Set[N]) order(need uint64) []N {
	if len(s.Nodes) == 1 {
		return s.Nodes
	}

	if s.Keep {
		kept := s.kept.Load()
		return slices.Concat(s.Nodes[kept:], s.Nodes[:kept])
	}

	need = max(need, s.Seen.Load())

	penalty := make(map[N]int, len(s.Nodes)) // once per node: health changes while they are compared
	for _, n := range s.Nodes {
		penalty[n] = n.State().unfit(need)
	}

	out := slices.Clone(s.Nodes)
	slices.SortStableFunc(out, func(a, b N) int { return cmp.Compare(penalty[a], penalty[b]) })

	return out
}

// verdict is what a round without an answer amounts to: the error of the most hopeful node, of
// several equal ones the first that wants to be left alone the shortest.
type verdict struct {
	err        error
	retryAfter time.Duration
}

func (v *verdict) add(err error) {
	var after time.Duration
	if f, ok := errors.AsType[*Failure](err); ok {
		after = f.RetryAfter
	}

	if v.err == nil || hopeIn(err) > hopeIn(v.err) || hopeIn(err) == hopeIn(v.err) && after < v.retryAfter {
		v.err, v.retryAfter = err, after
	}
}

// final says that asking again soon would not change the verdict. A node that is said to have
// thrown a height away is asked again, since that stops a network.
func (v *verdict) final() bool {
	h := hopeIn(v.err)
	return h != failed && h != pruned
}
