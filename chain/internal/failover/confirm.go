package failover

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/fault"
)

// Confirm returns nil when two nodes have the same block at a height, or when only one node is
// configured. hashAt returns the hash at the height on one node; above its tip it returns
// fault.NotFound or ErrLagging. The order of preference is not changed. Errors:
//   - fault.NotFound (block_unknown): a node has another block there
//   - fault.Unavailable: fewer than two nodes answer, or have reached the height
func (s *Set[N]) Confirm(
	ctx context.Context,
	height uint64,
	hash string,
	hashAt func(context.Context, N) (string, error),
) error {
	matches, others, err := agree(ctx, s, height, hash, hashAt)

	switch {
	case ctx.Err() != nil:
		return Fault(s.Network, ctx.Err())
	case len(s.Nodes) == 1 || matches == 2:
		return nil
	case others > 0:
		return fault.New(
			fault.NotFound, "block_unknown",
			"nodes of network %s disagree about block %d: not all have %s", s.Network, height, hash,
		)
	}

	return fault.Wrap(
		Fault(s.Network, err), fault.Unavailable, "node_unavailable",
		"network %s has no second node that confirms block %d", s.Network, height,
	)
}

// ConfirmCount is Confirm of a number that nodes count up to a height, of what. A node that counts otherwise is
// fault.NotFound (count_unknown).
func (s *Set[N]) ConfirmCount(
	ctx context.Context,
	height, count uint64,
	what string,
	countAt func(context.Context, N) (uint64, error),
) error {
	matches, others, err := agree(ctx, s, height, count, countAt)

	switch {
	case ctx.Err() != nil:
		return Fault(s.Network, ctx.Err())
	case len(s.Nodes) == 1 || matches == 2:
		return nil
	case others > 0:
		return fault.New(
			fault.NotFound,
			"count_unknown",
			"nodes of network %s disagree about %s up to block %d: not all count %d",
			s.Network,
			what,
			height,
			count,
		)
	}

	return fault.Wrap(
		Fault(s.Network, err), fault.Unavailable, "node_unavailable",
		"network %s has no second node that confirms %s up to block %d", s.Network, what, height,
	)
}

// agree counts the nodes that answer as wanted, up to 2, and those that answer otherwise. err is the most hopeful
// of the others' errors. It asks nobody when only one node is configured.
func agree[N interface {
	comparable
	State() *Node
}, V comparable](
	ctx context.Context,
	s *Set[N],
	height uint64,
	want V,
	read func(context.Context, N) (V, error),
) (matches, others int, err error) {
	if len(s.Nodes) == 1 {
		return 0, 0, nil
	}

	var result verdict

	for _, node := range s.preferenceOrder(height) {
		var found V

		err := s.askNode(ctx, node, 0, func(ctx context.Context, node N) (err error) {
			if found, err = read(ctx, node); errors.Is(err, fault.NotFound) {
				err = ErrLagging
			}

			return err
		})

		switch {
		case ctx.Err() != nil:
			return matches, others, ctx.Err()
		case err != nil:
			result.add(err)
		case found == want:
			matches++
		default:
			others++
		}

		if matches == 2 {
			break
		}
	}

	return matches, others, result.err
}
