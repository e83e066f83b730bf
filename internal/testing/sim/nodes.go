package sim

// The nodes that the driver asks, and what each of them does wrong.

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// NodeFaults are what one node does wrong. The zero value is a healthy node. Nodes share one network
// and one pool. Transactions are named by their hashes.
type NodeFaults struct {
	// Behind is how many blocks the node is below the tip.
	Behind uint64

	// Jump answers every second request from that many blocks further below the tip, as a load balancer
	// before nodes of different heights does.
	Jump uint64

	// PrunedBelow is the lowest height of a block that the node still has.
	PrunedBelow uint64

	// Syncing makes the node refuse every request.
	Syncing bool

	// OtherNetwork makes it a node of another network: no driver takes an answer from it.
	OtherNetwork bool

	// UnknownHeader gives its blocks header fields that the driver does not know. It then cannot verify
	// the contents, which are right, and says so in Block.Unverified.
	UnknownHeader bool

	// Denies are transactions that the node does not know by hash and has not in its pool. Its blocks
	// hold them. Status says TxDead once such a nonce is used at the final block.
	Denies []string

	// EmptyReceipts are transactions that the node shows by hash without their transfers.
	EmptyReceipts []string

	// DropsLogs are transactions whose logs its blocks lack. With DropsBloom the blocks' bloom filters lack
	// them too: a driver notices only where it verifies blocks.
	DropsLogs  []string
	DropsBloom bool

	// Counts are how many transactions of these addresses the node counts, whatever its blocks hold.
	Counts map[chain.Address]uint64

	// BaseFee and Priority are the prices that the node names, in base units of the native coin per gas, and Gas is
	// what it estimates; 0: the truth.
	BaseFee, Priority, Gas uint64

	// Blocks are what the node shows at these heights in place of the network's blocks. An empty Hash
	// is made up; Height, an empty Parent and a zero Time are the network's. Contents under the network's
	// hash are noticed where the driver verifies blocks.
	Blocks map[uint64]chain.Block
}

func (f NodeFaults) clone() NodeFaults {
	f.Denies = slices.Clone(f.Denies)
	f.EmptyReceipts = slices.Clone(f.EmptyReceipts)
	f.DropsLogs = slices.Clone(f.DropsLogs)

	f.Counts = maps.Clone(f.Counts)

	f.Blocks = maps.Clone(f.Blocks)
	for height, b := range f.Blocks {
		b.Transfers, b.Spent = slices.Clone(b.Transfers), slices.Clone(b.Spent)
		f.Blocks[height] = b
	}

	return f
}

// node is one node as the driver sees it.
type node struct {
	c        *Chain
	faults   NodeFaults
	requests uint64 // number of requests so far
	// troubledSince is when its faults were set.
	troubledSince time.Time
	tip           uint64 // height of its newest block during a request
}

// SetNode replaces the faults of a node, by its index in 0 to Config.Nodes − 1. Lag and Prune set those
// of node 0.
func (c *Chain) SetNode(index int, faults NodeFaults) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.nodes[index].faults, c.nodes[index].troubledSince = faults.clone(), c.now()
}

// DemoteNode makes the driver prefer the next node, for good.
func (c *Chain) DemoteNode(string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.preferNext()
}

func (c *Chain) preferNext() { c.preferred = (c.preferred + 1) % len(c.nodes) }

// PreferredNode returns the index of the node that the driver asks first.
func (c *Chain) PreferredNode() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.preferred
}

// preferredFirst returns the nodes in the order in which they are asked.
func (c *Chain) preferredFirst() []*node {
	return slices.Concat(c.nodes[c.preferred:], c.nodes[:c.preferred])
}

// preferredLast returns the nodes in the order of a second opinion: the others in rotation come first.
func (c *Chain) preferredLast() []*node {
	order := c.preferredFirst()
	if len(order) == 1 {
		return order
	}

	preferred, others := order[0], order[1:]
	start := c.turn % len(others)
	c.turn++

	return slices.Concat(others[start:], others[:start], []*node{preferred})
}

// ask calls the nodes, the preferred one first, until one answers.
func ask[T any](ctx context.Context, c *Chain, method Method, read func(*node) (T, error)) (T, error) {
	return askIn(ctx, c, method, c.preferredFirst, read)
}

// askIn calls the nodes in an order until one answers. When none does, the most retryable error counts.
func askIn[T any](
	ctx context.Context,
	c *Chain,
	method Method,
	order func() []*node,
	read func(*node) (T, error),
) (answer T, err error) {
	nodes, injected, err := c.call(ctx, method, order)
	if err != nil {
		return answer, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	var worst error

	for i, n := range nodes {
		if i > 0 && n == c.nodes[0] {
			injected = c.nextFault(method)
		}

		if n == c.nodes[0] && injected != nil {
			err = injected
		} else if err = n.begin(); err == nil {
			answer, err = read(n)
		}

		if len(nodes) == 1 || err == nil || rankOf(err) == rankAnswer {
			return answer, err
		}

		if worst == nil || rankOf(err) > rankOf(worst) {
			worst = err
		}
	}

	var none T

	return none, worst
}

// begin starts a request to the node. It fails when a driver would take no answer from it.
func (n *node) begin() error {
	n.requests++

	behind := n.faults.Behind
	if n.requests%2 == 0 {
		behind += n.faults.Jump
	}

	tip := n.c.tip()
	n.tip = tip - min(behind, tip)

	switch {
	case n.faults.OtherNetwork:
		return fault.New(
			fault.Stopped, "chain_id_mismatch", "a node of network %s serves another network",
			n.c.network.Slug,
		)
	case n.faults.Syncing:
		return fault.New(
			fault.Unavailable, "node_unavailable", "a node of network %s is syncing",
			n.c.network.Slug,
		)
	}

	return nil
}

// rank orders errors by how much another request may change, the least promising first.
type rank int

const (
	rankForeign rank = iota // a node of another network
	rankPruned
	rankBehind
	rankFailed
	rankAnswer // not the node's failure: every node would answer so
)

func rankOf(err error) rank {
	switch {
	case fault.Code(err) == "chain_id_mismatch":
		return rankForeign
	case fault.Code(err) == "node_pruned":
		return rankPruned
	case errors.Is(err, fault.Unavailable):
		return rankFailed
	case fault.Code(err) == "block_unknown":
		return rankBehind
	}

	return rankAnswer
}
