package sim

// What two nodes say alike (chain.Agreed), or the only one.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// agree returns what two nodes say alike, or the only one. A dispute has the next node preferred.
func agree[V comparable](
	ctx context.Context,
	c *Chain,
	method Method,
	what string,
	read func(*node) (V, error),
) (value V, err error) {
	if len(c.nodes) == 1 {
		return ask(ctx, c, method, read)
	}

	nodes, injected, err := c.call(ctx, method, c.preferredFirst)
	if err != nil {
		return value, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	var said []V

	for i, n := range nodes {
		if i > 0 && n == c.nodes[0] {
			injected = c.nextFault(method)
		}

		if n == c.nodes[0] && injected != nil || n.begin() != nil {
			continue
		}

		word, err := read(n)
		if err != nil {
			continue
		}

		if slices.Contains(said, word) {
			return word, nil
		}

		said = append(said, word)
	}

	if len(said) > 1 {
		c.preferNext()

		return value, c.notAgreed(
			"nodes_disagree",
			"the nodes of network %s say different things of %s",
			what,
		)
	}

	return value, c.notAgreed("nodes_missing", "network %s has no second node that confirms %s", what)
}

func (c *Chain) notAgreed(code, format, what string) error {
	return fault.Wrap(chain.ErrNotAgreed, fault.Unavailable, code, format, c.network.Slug, what)
}

// AgreedHead returns the newest blocks that two nodes have.
func (c *Chain) AgreedHead(ctx context.Context) (head chain.Head, err error) {
	if len(c.nodes) == 1 {
		return askIn(ctx, c, MethodAgreedHead, c.preferredFirst, (*node).head)
	}

	nodes, injected, err := c.call(ctx, MethodAgreedHead, c.preferredFirst)
	if err != nil {
		return head, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	var answering []*node

	for i, n := range nodes {
		if i > 0 && n == c.nodes[0] {
			injected = c.nextFault(MethodAgreedHead)
		}

		if (n != c.nodes[0] || injected == nil) && n.begin() == nil {
			answering = append(answering, n)
		}
	}

	if len(answering) < 2 {
		return head, c.notAgreed(
			"nodes_missing", "network %s has no second node that confirms %s", "the newest block",
		)
	}

	second := slices.Sorted(func(yield func(uint64) bool) {
		for _, n := range answering {
			if !yield(n.tip) {
				return
			}
		}
	})[len(answering)-2]

	tip := c.sharedBelow(answering, func(n *node) uint64 { return n.tip })
	if tip.Height+maxApart < second {
		return head, c.notAgreed(
			"nodes_disagree", "the nodes of network %s say different things of %s", "the newest blocks",
		)
	}

	head.Tip = tip
	if !c.config.NoFinality {
		head.Safe = c.sharedBelow(answering, (*node).safe)
		head.Final = c.sharedBelow(answering, (*node).final)
	}

	return head, nil
}

// maxApart is how many blocks below two tips a driver looks for one that both nodes have.
const maxApart = 8

// sharedBelow returns the newest block that two nodes have, each up to its own height.
func (c *Chain) sharedBelow(nodes []*node, heightOf func(*node) uint64) chain.Ref {
	for height := c.tip() + 1; height > 0; height-- {
		var seen []string

		for _, n := range nodes {
			if height-1 > heightOf(n) {
				continue
			}

			ref := n.ref(height - 1)
			if slices.Contains(seen, ref.Hash) {
				return ref
			}

			seen = append(seen, ref.Hash)
		}
	}

	return chain.Ref{}
}

// AgreedBlock returns a block as two nodes show it. What is in a block that the driver verifies is what another node
// than the preferred one shows, in rotation.
func (c *Chain) AgreedBlock(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	hash, err := agree(
		ctx, c, MethodAgreedBlock, fmt.Sprintf("block %d", at.Height),
		func(n *node) (string, error) {
			if err := n.checkReadable(at.Height); err != nil {
				return "", err
			}

			return n.ref(at.Height).Hash, nil
		},
	)

	switch {
	case err != nil:
		return chain.Block{}, err
	case hash != at.Hash:
		c.DemoteNode("two nodes have another block than it showed")
		return chain.Block{}, c.otherBlock(at)
	case len(hashes) == 0:
		return chain.Block{Ref: at}, nil
	}

	read := func(n *node) (chain.Block, error) {
		if err := n.checkReadable(at.Height); err != nil {
			return chain.Block{}, err
		}

		b, err := n.block(at.Height)
		if err == nil && b.Hash != at.Hash {
			return chain.Block{}, c.otherBlock(at)
		}

		return b, err
	}

	b, err := askIn(ctx, c, MethodAgreedBlock, c.preferredLast, read)
	if err != nil || b.Unverified == "" || len(c.nodes) == 1 {
		return b, err
	}

	return c.agreedContents(at, read)
}

// agreedContents returns a block that cannot be verified as two nodes show it.
func (c *Chain) agreedContents(at chain.Ref, read func(*node) (chain.Block, error)) (chain.Block, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	var shown []chain.Block

	for _, n := range c.preferredFirst() {
		if n.begin() != nil {
			continue
		}

		b, err := read(n)
		if err != nil {
			continue
		}

		if slices.ContainsFunc(shown, func(other chain.Block) bool {
			return slices.Equal(b.Transfers, other.Transfers) && slices.Equal(b.Spent, other.Spent)
		}) {
			return b, nil
		}

		shown = append(shown, b)
	}

	return chain.Block{}, c.notAgreed(
		"nodes_disagree", "the nodes of network %s say different things of %s",
		fmt.Sprintf("what is in block %d", at.Height),
	)
}

func (c *Chain) otherBlock(at chain.Ref) error {
	return fault.New(
		fault.NotFound, "block_unknown", "the nodes of network %s have another block than %s at height %d",
		c.network.Slug, at.Hash, at.Height,
	)
}

// AgreedNonce returns how many transactions of an address are in blocks up to a block, as two nodes count.
func (c *Chain) AgreedNonce(ctx context.Context, address chain.Address, at chain.Ref) (uint64, error) {
	return agree(
		ctx, c, MethodAgreedNonce, fmt.Sprintf("the transactions of %s up to block %d", address, at.Height),
		func(n *node) (uint64, error) { return n.count(address, at.Height), n.checkReadable(at.Height) },
	)
}

// Nodes returns the state of each node, as it would answer now.
func (c *Chain) Nodes() []chain.NodeState {
	c.mu.Lock()
	defer c.mu.Unlock()

	states := make([]chain.NodeState, len(c.nodes))

	for i, n := range c.nodes {
		states[i] = chain.NodeState{
			Name: fmt.Sprintf("node %d", i),
			Tip:  c.tip() - min(n.faults.Behind, c.tip()),
		}

		switch state := &states[i]; {
		case n.faults.OtherNetwork:
			state.Trouble, state.Why = chain.NodeForeign, "it serves another network"
		case n.faults.Syncing:
			state.Trouble, state.Why = chain.NodeSilent, "it is syncing"
		case n.faults.Behind > 1:
			state.Trouble, state.Why = chain.NodeBehind, "it is behind another node"
		case len(n.faults.Blocks) > 0:
			state.Trouble, state.Why = chain.NodeDisagrees, "it has another block than others"
		}

		if states[i].Trouble != "" {
			states[i].Since = n.troubledSince
		}
	}

	return states
}

// askFinal is ask for what a node may refuse: of several another one has to refuse with the same code, or the answer of
// one that does not counts. A call that is intercepted is refused by all.
func askFinal[T any](ctx context.Context, c *Chain, method Method, read func(*node) (T, error)) (T, error) {
	if len(c.nodes) == 1 {
		return ask(ctx, c, method, read)
	}

	var none T

	nodes, injected, err := c.call(ctx, method, c.preferredFirst)
	if err != nil {
		return none, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	var refused, failed error

	for i, n := range nodes {
		if i > 0 && n == c.nodes[0] {
			injected = c.nextFault(method)
		}

		var answer T

		if n == c.nodes[0] && injected != nil {
			err = injected
		} else if err = n.begin(); err == nil {
			answer, err = read(n)
		}

		switch {
		case err == nil:
			return answer, nil
		case !errors.Is(err, fault.Invalid) && !errors.Is(err, fault.State):
			failed = err
		case refused != nil && fault.Code(refused) == fault.Code(err):
			return none, err
		default:
			refused = err
		}
	}

	if refused == nil {
		return none, failed
	}

	return none, c.notAgreed("nodes_missing", "network %s has no second node that says: %s", refused.Error())
}
