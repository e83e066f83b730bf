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

// maxWait bounds the pause between two attempts. A node with a longer Retry-After is not waited for.
const maxWait = 10 * time.Second

// Member is a driver's endpoint that embeds Node.
type Member interface {
	comparable
	State() *Node
}

// Set holds the nodes of one network, at least one. It is safe for concurrent use once its fields are set.
type Set[N Member] struct {
	Nodes   []N
	Network string // slug
	Log     *slog.Logger
	// Keep prefers the node that answered last. Without it nodes are ordered by health: those that
	// neither back off after a failure nor lag come first, otherwise in the order of Nodes.
	Keep bool
	// Verify checks that a node serves the network. It is called until it succeeds once per node.
	Verify func(ctx context.Context, n N) error
	// Reach reads a node's newest height; below need it returns ErrLagging. Where it is nil, nodes are called
	// whatever their height.
	Reach func(ctx context.Context, n N, need uint64) error
	// Alone is for how long all nodes but one have to be missing until what verified blocks prove is taken from that
	// one; 0 for never. See IsAlone.
	Alone time.Duration
	// Seen is the newest height that any node showed.
	Seen atomic.Uint64

	lastAnswered atomic.Int32  // index in Nodes
	turn         atomic.Uint64 // of AskOthers
}

// Ask calls f on one node after another until one answers, and repeats that up to attempts times
// with a pause between. A node is called only after Verify succeeded, and only for a height (need,
// 0 for none) up to its tip.
//
// An answer is nil, or a fault of any kind but Unavailable: it is returned unchanged. Otherwise the
// most retryable error of the last attempt is returned as a fault (see Fault).
func (s *Set[N]) Ask(
	ctx context.Context,
	attempts int,
	need uint64,
	call func(context.Context, N) error,
) error {
	return s.attempt(ctx, attempts, func() (result verdict, answered bool, err error) {
		return s.askInOrder(ctx, s.preferenceOrder(need), need, call)
	})
}

// attempt calls try up to attempts times, with a pause between, until nodes answered.
func (s *Set[N]) attempt(
	ctx context.Context,
	attempts int,
	try func() (result verdict, answered bool, err error),
) error {
	backOff := backoff.ExponentialBackOff{
		InitialInterval:     250 * time.Millisecond,
		RandomizationFactor: 0.5,
		Multiplier:          2,
		MaxInterval:         5 * time.Second,
	}

	for attempt := 1; ; attempt++ {
		result, answered, err := try()
		if answered {
			return err
		}

		wait := max(backOff.NextBackOff(), result.retryAfter)
		if result.isFinal() || attempt >= attempts || wait > maxWait {
			return Fault(s.Network, result.err)
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

// AskOthers makes one attempt for a second opinion: the preferred node is called last, the others
// in rotation. With Keep the preferred one stays preferred. Errors are those of Ask.
func (s *Set[N]) AskOthers(ctx context.Context, need uint64, call func(context.Context, N) error) error {
	order := slices.Clone(s.preferenceOrder(need))

	preferred, others := order[0], order[1:]
	if count := uint64(len(others)); count > 0 {
		start := s.turn.Add(1) % count
		order = slices.Concat(others[start:], others[:start], []N{preferred})
	}

	kept := s.lastAnswered.Load()
	defer s.lastAnswered.Store(kept)

	result, answered, err := s.askInOrder(ctx, order, need, call)
	if answered {
		return err
	}

	return Fault(s.Network, result.err)
}

// AskBeside makes one attempt on each node but one that has answered already, the preferred first, until call returns
// that it knows enough. A node that backs off or cannot be asked, or gives no usable answer, is passed over: what is
// known already waits for no node that hangs. The error is ctx's.
func (s *Set[N]) AskBeside(
	ctx context.Context,
	answered N,
	need uint64,
	call func(context.Context, N) (enough bool, err error),
) error {
	_, err := s.askBeside(ctx, answered, need, false, call)

	return err
}

// besideGrace is how long AskAllBeside waits for a node that backs off.
const besideGrace = 2 * time.Second

// AskAllBeside is AskBeside, which at last asks the nodes that back off as well, each for besideGrace: one answer that
// was lost leaves no question to one node's word.
func (s *Set[N]) AskAllBeside(
	ctx context.Context,
	answered N,
	need uint64,
	call func(context.Context, N) (enough bool, err error),
) error {
	if enough, err := s.askBeside(ctx, answered, need, false, call); enough || err != nil {
		return err
	}

	_, err := s.askBeside(ctx, answered, need, true, call)

	return err
}

// askBeside asks the nodes that back off, or those that do not. enough is what call returned last.
func (s *Set[N]) askBeside(
	ctx context.Context,
	answered N,
	need uint64,
	failing bool,
	call func(context.Context, N) (enough bool, err error),
) (enough bool, err error) {
	for _, node := range s.preferenceOrder(need) {
		if node == answered || node.State().isFailing() != failing {
			continue
		}

		enough, err = s.askBrief(ctx, node, need, failing, call)
		if enough || err != nil {
			return enough, err
		}
	}

	return false, nil
}

// askBrief asks one node, for besideGrace where it backs off. The error is ctx's.
func (s *Set[N]) askBrief(
	ctx context.Context,
	node N,
	need uint64,
	failing bool,
	call func(context.Context, N) (enough bool, err error),
) (enough bool, err error) {
	brief := ctx

	if failing {
		var stop context.CancelFunc

		brief, stop = context.WithTimeout(ctx, besideGrace)
		defer stop()
	}

	_ = s.askNode(brief, node, need, func(ctx context.Context, node N) (err error) {
		enough, err = call(ctx, node)
		return err
	})

	if ctx.Err() != nil {
		return false, Fault(s.Network, ctx.Err())
	}

	return enough, nil
}

// DemoteNode demotes the preferred node for as long as a failure would, and logs why; with Keep until another one
// fails. It is compared with others all the same, so that no node counts alone by having another one demoted.
func (s *Set[N]) DemoteNode(why string) {
	order := s.preferenceOrder(0)
	node := order[0].State()
	node.demote()

	if s.Keep && len(order) > 1 {
		s.lastAnswered.Store(int32(slices.Index(s.Nodes, order[1])))
	}

	s.Log.Warn("node contradicts itself", "network", s.Network, "host", node.Host, "error", why)
}

// preferenceOrder returns the nodes in the order in which they are called for a height.
func (s *Set[N]) preferenceOrder(need uint64) []N {
	if len(s.Nodes) == 1 {
		return s.Nodes
	}

	if s.Keep {
		first := s.lastAnswered.Load()
		return slices.Concat(s.Nodes[first:], s.Nodes[:first])
	}

	need = max(need, s.Seen.Load())

	// Read once per node: a penalty may change while the nodes are sorted.
	penalties := make(map[N]int, len(s.Nodes))
	for _, node := range s.Nodes {
		penalties[node] = node.State().penalty(need)
	}

	sorted := slices.Clone(s.Nodes)
	slices.SortStableFunc(sorted, func(a, b N) int { return cmp.Compare(penalties[a], penalties[b]) })

	return sorted
}

// askInOrder makes one attempt over all nodes. With answered, err is the answer and may be nil.
func (s *Set[N]) askInOrder(
	ctx context.Context,
	order []N,
	need uint64,
	call func(context.Context, N) error,
) (result verdict, answered bool, err error) {
	for _, node := range order {
		err := s.askNode(ctx, node, need, call)
		if err == nil || isAnswer(err) {
			s.lastAnswered.Store(int32(slices.Index(s.Nodes, node)))
			return result, true, err
		}

		if ctx.Err() != nil {
			return result, true, Fault(s.Network, ctx.Err())
		}

		result.add(err)

		if rankOf(err) == rankFailed {
			s.Log.WarnContext(
				ctx, "node failed", "network", s.Network, "host", node.State().Host, "error", err,
			)
		}
	}

	return result, false, nil
}

// askNode calls one node, unless it throttles us, serves another network or has not reached need.
func (s *Set[N]) askNode(
	ctx context.Context,
	node N,
	need uint64,
	call func(context.Context, N) error,
) error {
	state := node.State()
	state.setAlone(len(s.Nodes) == 1)

	if throttled := state.BackingOff(); throttled != nil {
		return throttled
	}

	err := s.Check(ctx, node)
	defer func() { state.NoteAnswer(ctx, err) }()

	if err == nil && s.Reach != nil && need > state.KnownTip() {
		err = s.Reach(ctx, node, need)
	}

	if err == nil {
		err = call(ctx, node)
	}

	if failure, ok := errors.AsType[*Failure](err); ok {
		failure.RetryAfter = state.throttledFor()
		state.markFailed()
	} else if err == nil {
		state.markHealthy()
	}

	return err
}

// Check runs Verify on a node unless it succeeded before, and returns its error.
func (s *Set[N]) Check(ctx context.Context, node N) error {
	state := node.State()
	state.mu.Lock()
	known := state.verified
	state.mu.Unlock()

	if known {
		return nil
	}

	err := s.Verify(ctx, node)
	if _, foreign := errors.AsType[*Mismatch](err); foreign {
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

// verdict is the outcome of an attempt that no node answered: the most retryable error and its
// retry delay. Of equally retryable errors it keeps the one with the shortest delay.
type verdict struct {
	err        error
	retryAfter time.Duration
}

// add takes one node's error into account.
func (v *verdict) add(err error) {
	var retryAfter time.Duration
	if failure, ok := errors.AsType[*Failure](err); ok {
		retryAfter = failure.RetryAfter
	}

	rank, best := rankOf(err), rankOf(v.err)
	if v.err == nil || rank > best || rank == best && retryAfter < v.retryAfter {
		v.err, v.retryAfter = err, retryAfter
	}
}

// isFinal reports whether another attempt cannot change the verdict. A pruned height is retried
// all the same, because it stops the network.
func (v *verdict) isFinal() bool {
	rank := rankOf(v.err)
	return rank != rankFailed && rank != rankPruned
}
