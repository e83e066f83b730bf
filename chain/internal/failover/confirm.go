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
	if len(s.Nodes) == 1 {
		return nil
	}

	var (
		result          verdict
		matches, others int
	)

	for _, node := range s.preferenceOrder(height) {
		var found string

		err := s.askNode(ctx, node, 0, func(ctx context.Context, node N) (err error) {
			if found, err = hashAt(ctx, node); errors.Is(err, fault.NotFound) {
				err = ErrLagging
			}

			return err
		})

		switch {
		case ctx.Err() != nil:
			return Fault(s.Network, ctx.Err())
		case err != nil:
			result.add(err)
		case found == hash:
			matches++
		default:
			others++
		}

		if matches == 2 {
			return nil
		}
	}

	if others > 0 {
		return fault.New(
			fault.NotFound, "block_unknown",
			"nodes of network %s disagree about block %d: not all have %s", s.Network, height, hash,
		)
	}

	return fault.Wrap(
		Fault(s.Network, result.err), fault.Unavailable, "node_unavailable",
		"network %s has no second node that confirms block %d", s.Network, height,
	)
}
