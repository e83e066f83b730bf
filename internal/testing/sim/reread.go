package sim

// Second opinions: what other nodes than the preferred one say about a block.

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Reread returns a block as another node than the preferred one shows it, in rotation; with one node, as
// that one does. Another block at that height is fault.NotFound.
func (c *Chain) Reread(ctx context.Context, at chain.Ref, _ []string) (chain.Block, error) {
	b, err := askIn(ctx, c, MethodReread, c.preferredLast, func(n *node) (chain.Block, error) {
		if err := n.checkReadable(at.Height); err != nil {
			return chain.Block{}, err
		}

		return n.block(at.Height)
	})
	if err == nil && b.Hash != at.Hash {
		return chain.Block{}, c.otherBlock(at)
	}

	return b, err
}

// ConfirmRef returns nil when two nodes have the block, or when there is only one node.
func (c *Chain) ConfirmRef(ctx context.Context, at chain.Ref) error {
	if len(c.nodes) == 1 {
		return nil
	}

	nodes, injected, err := c.call(ctx, MethodConfirmRef, c.preferredFirst)
	if err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	var same, others int

	for i, n := range nodes {
		if i > 0 && n == c.nodes[0] {
			injected = c.nextFault(MethodConfirmRef)
		}

		switch {
		case n == c.nodes[0] && injected != nil, n.begin() != nil, n.checkReadable(at.Height) != nil:
		case n.ref(at.Height).Hash == at.Hash:
			same++
		default:
			others++
		}
	}

	switch {
	case same >= 2:
		return nil
	case others > 0:
		return c.otherBlock(at)
	default:
		return fault.New(
			fault.Unavailable, "node_unavailable", "network %s has no second node that has block %d",
			c.network.Slug, at.Height,
		)
	}
}

func (c *Chain) otherBlock(at chain.Ref) error {
	return fault.New(
		fault.NotFound, "block_unknown", "a node of network %s has another block than %s at height %d",
		c.network.Slug, at.Hash, at.Height,
	)
}
