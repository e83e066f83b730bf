package failover

import (
	"context"
	"errors"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// What nodes agree on. No answer of one node among several confirms money; what counts is what two of them say.

// Subject is what nodes are asked to agree on.
type Subject struct {
	// What names it in errors, such as "block 7".
	What string
	// Height is the block that a node has to have reached; 0 for none.
	Height uint64
	// Proven is set where the answer is checked against verified blocks: Set.Alone applies to it.
	Proven bool
}

// Agree returns the value that two nodes give, or that the only one gives which is configured. Nodes are asked in the
// order of preference until two agree; that order is not changed, but where two nodes contradict the preferred one.
// read returns fault.NotFound or ErrLagging where its node has not got that far. Errors:
//   - those of Ask, where one node is configured;
//   - fault.Unavailable (nodes_missing): fewer than two nodes answer;
//   - fault.Unavailable (nodes_disagree): no two answers are alike.
func Agree[N Member, V comparable](
	ctx context.Context,
	s *Set[N],
	attempts int,
	subject Subject,
	read func(context.Context, N) (V, error),
) (value V, err error) {
	if len(s.Nodes) == 1 {
		err = s.Ask(ctx, attempts, subject.Height, func(ctx context.Context, node N) (err error) {
			value, err = read(ctx, node)
			return err
		})

		return value, err
	}

	var (
		result verdict
		said   []answer[N, V]
	)

	for _, node := range s.preferenceOrder(subject.Height) {
		var found V

		err := s.askNode(ctx, node, 0, func(ctx context.Context, node N) (err error) {
			if found, err = read(ctx, node); errors.Is(err, fault.NotFound) {
				err = ErrLagging
			}

			return err
		})

		switch {
		case ctx.Err() != nil:
			return value, Fault(s.Network, ctx.Err())
		case err != nil:
			result.add(err)
			continue
		}

		said = append(said, answer[N, V]{node, found})

		if agreed, ok := pair(said); ok {
			noteAgreement(s, subject, said, agreed)
			return agreed, nil
		}
	}

	switch {
	case len(said) > 1:
		noteDispute(s, subject, said)
		return value, s.Disagree(subject.What)
	case len(said) == 1 && subject.Proven && s.IsAlone(said[0].node):
		return said[0].value, nil
	}

	return value, s.Missing(result.err, subject.What)
}

// answer is what one node says.
type answer[N Member, V comparable] struct {
	node  N
	value V
}

// pair returns the value that the last answer shares with an earlier one.
func pair[N Member, V comparable](said []answer[N, V]) (value V, ok bool) {
	last := said[len(said)-1]
	for _, earlier := range said[:len(said)-1] {
		if earlier.value == last.value {
			return last.value, true
		}
	}

	return value, false
}

// noteAgreement notes which nodes do not say what two of them do. The preferred node is demoted where it does not. That
// a node says the same of one thing is no sign that it does of all: agree.Head ends the trouble.
func noteAgreement[N Member, V comparable](s *Set[N], subject Subject, said []answer[N, V], agreed V) {
	preferred := s.preferenceOrder(0)[0]

	for _, a := range said {
		if a.value == agreed {
			continue
		}

		a.node.State().note(chain.NodeDisagrees, "two other nodes say otherwise of "+subject.What)

		if a.node == preferred {
			s.DemoteNode("two other nodes say otherwise of " + subject.What)
		}
	}
}

// noteDispute notes that no two nodes say the same. Another node is preferred: either may be wrong.
func noteDispute[N Member, V comparable](s *Set[N], subject Subject, said []answer[N, V]) {
	for _, a := range said {
		a.node.State().note(chain.NodeDisagrees, "no other node says the same of "+subject.What)
	}

	s.DemoteNode("no other node says the same of " + subject.What)
}

// Disagree returns the error of something of which no two nodes say the same.
func (s *Set[N]) Disagree(what string) error {
	return fault.Wrap(
		chain.ErrNotAgreed, fault.Unavailable, "nodes_disagree",
		"the nodes of network %s say different things of %s", s.Network, what,
	)
}

// Missing returns the error of something that no second node says; cause is why one did not answer, or nil.
func (s *Set[N]) Missing(cause error, what string) error {
	return fault.Wrap(
		errors.Join(chain.ErrNotAgreed, Fault(s.Network, cause)), fault.Unavailable, "nodes_missing",
		"network %s has no second node that confirms %s", s.Network, what,
	)
}

// IsAlone reports whether the network goes on with a node's verified blocks: all others have been missing for
// Set.Alone, which is set. One that answers, however far behind, is not missing.
func (s *Set[N]) IsAlone(with N) bool {
	if s.Alone <= 0 || len(s.Nodes) == 1 {
		return false
	}

	for _, node := range s.Nodes {
		if node != with && !node.State().isMissingFor(s.Alone) {
			return false
		}
	}

	return !with.State().isMissingFor(0)
}

// States returns the state of each node, in the order of configuration.
func (s *Set[N]) States() []chain.NodeState {
	out := make([]chain.NodeState, len(s.Nodes))
	for i, node := range s.Nodes {
		out[i] = node.State().shown()
		out[i].Alone = s.IsAlone(node)
	}

	return out
}

// AskEach calls every node at once. It returns when all have answered, or askGrace after two have; call is then
// canceled where it still runs.
func (s *Set[N]) AskEach(ctx context.Context, call func(context.Context, N) error) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()

	results := make(chan error, len(s.Nodes))

	var (
		result   verdict
		answered int
		slow     *time.Timer
	)

	for _, node := range s.Nodes {
		go func() {
			err := s.askNode(asking, node, 0, call)
			if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				node.State().note(chain.NodeSilent, "it did not answer in time")
			}

			results <- err
		}()
	}

	for range s.Nodes {
		err := <-results
		if err != nil {
			result.add(err)
			continue
		}

		if answered++; answered == 2 && slow == nil {
			slow = time.AfterFunc(askGrace, stop)
			defer slow.Stop()
		}
	}

	switch {
	case answered > 0:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return Fault(s.Network, ctx.Err())
	}

	return Fault(s.Network, result.err)
}

// askGrace is how long AskEach waits for further nodes once two have answered.
const askGrace = 2 * time.Second
