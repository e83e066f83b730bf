package failover

import (
	"context"
	"errors"
	"fmt"

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
	return agree(
		ctx, s, height, hash, hashAt, fmt.Sprintf("block %d", height),
		fault.New(
			fault.NotFound, "block_unknown",
			"nodes of network %s disagree about block %d: not all have %s", s.Network, height, hash,
		),
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
	what = fmt.Sprintf("%s up to block %d", what, height)

	return agree(
		ctx, s, height, count, countAt, what,
		fault.New(
			fault.NotFound, "count_unknown",
			"nodes of network %s disagree about %s: not all count %d", s.Network, what, count,
		),
	)
}

// agree returns nil when two nodes answer as wanted, or when only one is configured, which it does not ask. It returns
// disagreement when a node answers otherwise, and fault.Unavailable when too few confirm what is asked for.
func agree[N Member, V comparable](
	ctx context.Context,
	s *Set[N],
	height uint64,
	want V,
	read func(context.Context, N) (V, error),
	what string,
	disagreement error,
) error {
	if len(s.Nodes) == 1 {
		return nil
	}

	var (
		result          verdict
		matches, others int
	)

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
			return Fault(s.Network, ctx.Err())
		case err != nil:
			result.add(err)
		case found == want:
			matches++
		default:
			others++
		}

		if matches == 2 {
			return nil
		}
	}

	if others > 0 {
		return disagreement
	}

	return fault.Wrap(
		Fault(s.Network, result.err), fault.Unavailable, "node_unavailable",
		"network %s has no second node that confirms %s", s.Network, what,
	)
}
