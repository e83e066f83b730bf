package failover

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// sendGrace is how long a transaction is sent to other nodes once one has answered.
const sendGrace = 2 * time.Second

// Send sends a transaction to every node at once, up to attempts times until one answers. It returns nil when one
// accepts it: the hash is the same everywhere, and a node that accepts a transaction and drops it holds up nothing.
// Nodes that are slower than sendGrace after the first answer are not waited for. Errors:
//   - the refusal, a fault of any kind but Unavailable, when every node refuses with the same code;
//   - fault.Unavailable: anything else, which proves nothing.
func (s *Set[N]) Send(ctx context.Context, attempts int, send func(context.Context, N) error) error {
	return s.attempt(ctx, attempts, func() (result verdict, answered bool, err error) {
		sent := s.sendToAll(ctx, send)

		if ctx.Err() != nil {
			return sent.failures, true, Fault(s.Network, ctx.Err())
		}

		return sent.failures, sent.answered(), s.outcome(sent)
	})
}

// sending is what nodes answered to one transaction.
type sending[N Member] struct {
	accepted []N
	refusals []error
	failures verdict // of nodes that gave no answer
}

func (s sending[N]) answered() bool { return len(s.accepted)+len(s.refusals) > 0 }

// sendToAll sends to every node at once. It returns when all have answered, or sendGrace after the first one.
func (s *Set[N]) sendToAll(ctx context.Context, send func(context.Context, N) error) (sent sending[N]) {
	sending, stop := context.WithCancel(ctx)
	defer stop()

	type answer struct {
		node N
		err  error
	}

	answers := make(chan answer, len(s.Nodes))

	var slow *time.Timer // ends what is still being sent

	for _, node := range s.Nodes {
		go func() { answers <- answer{node, s.askNode(sending, node, 0, send)} }()
	}

	for range s.Nodes {
		a := <-answers

		switch {
		case a.err == nil:
			sent.accepted = append(sent.accepted, a.node)
		case isAnswer(a.err):
			sent.refusals = append(sent.refusals, a.err)
		default:
			sent.failures.add(a.err)
		}

		if a.err != nil && !isAnswer(a.err) && rankOf(a.err) == rankFailed && sending.Err() == nil {
			s.Log.WarnContext(
				ctx, "node failed", "network", s.Network, "host", a.node.State().Host, "error", a.err,
			)
		}

		if sent.answered() && slow == nil {
			slow = time.AfterFunc(sendGrace, stop)
			defer slow.Stop()
		}
	}

	return sent
}

// outcome returns what all answers to a transaction amount to; see Send. With Keep a node that has it is preferred.
func (s *Set[N]) outcome(sent sending[N]) error {
	if len(sent.accepted) > 0 {
		if preferred := s.preferenceOrder(0)[0]; s.Keep && !slices.Contains(sent.accepted, preferred) {
			s.lastAnswered.Store(int32(slices.Index(s.Nodes, sent.accepted[0])))
		}

		return nil
	}

	if sent.failures.err != nil {
		return Fault(s.Network, sent.failures.err)
	}

	first := sent.refusals[0]
	for _, other := range sent.refusals[1:] {
		if fault.Code(other) != fault.Code(first) {
			return fault.New(
				fault.Unavailable,
				"broadcast_refused",
				"the nodes of network %s refuse a transaction otherwise: %v",
				s.Network,
				errors.Join(first, other),
			)
		}
	}

	return first
}
