package tron

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Head returns the newest block and the newest solidified one. A node that is behind the highest tip seen is
// passed over while another is not. Where several are configured, the newest block is one that two of them have
// reached, unless the second is more than maxLag blocks behind. While a node's newest block stays the same, it is asked
// for nothing else, and no other node is asked.
func (d *driver) Head(ctx context.Context) (chain.Head, error) {
	var (
		best chain.Head
		by   *endpoint
	)

	err := d.ask(ctx, 0, func(ctx context.Context, node *endpoint) error {
		head, err := d.headOf(ctx, node)
		if err != nil {
			return err
		}

		if best.Tip.IsZero() || head.Tip.Height > best.Tip.Height {
			best, by = head, node
		}

		if head.Tip.Height < d.nodes.Seen.Load() {
			return failover.ErrLagging
		}

		return nil
	})
	if errors.Is(err, failover.ErrLagging) { // all nodes agree that the chain became shorter
		err = nil
	}

	if err != nil {
		return chain.Head{}, err
	}

	d.nodes.Seen.Store(best.Tip.Height)

	now := &seenHead{by: by, own: best, tip: best.Tip}
	if d.hasSeveral() && !d.lastHead.Load().stands(by, best.Tip) {
		if now.tip, err = d.sharedTip(ctx, by, best.Tip); err != nil {
			return chain.Head{}, err
		}
	}

	d.lastHead.Store(now)

	if best.Tip = now.tip; best.Final.Height > best.Tip.Height {
		best.Final = best.Tip
	}

	return best, nil
}

// seenHead is what Head returned last.
type seenHead struct {
	by  *endpoint
	own chain.Head // of that node
	tip chain.Ref  // that was returned
}

// stands reports whether a node's newest block is the one that was returned last. It may be nil.
func (s *seenHead) stands(by *endpoint, tip chain.Ref) bool {
	return s != nil && s.by == by && s.tip.Hash == tip.Hash
}

// headOf returns one endpoint's head. Solidified blocks come with new blocks only.
func (d *driver) headOf(ctx context.Context, node *endpoint) (chain.Head, error) {
	tip, err := node.latest(ctx, full)
	if err != nil {
		return chain.Head{}, err
	}

	if last := d.lastHead.Load(); last != nil && last.by == node && last.own.Tip.Hash == tip.Hash {
		return last.own, nil
	}

	final, err := node.latest(ctx, solidified)
	if err != nil || final.Height <= tip.Height {
		return chain.Head{Tip: tip, Final: final}, err
	}

	return node.head(ctx) // blocks were made meanwhile
}

// maxLag is for how many blocks a block is not read yet that one node alone has reached: what others leave out of it,
// or make up, would not be seen.
const maxLag = 4

// nodeTip is the newest block of a node.
type nodeTip struct {
	node *endpoint
	ref  chain.Ref
}

// at returns the node's block at a height up to its newest.
func (t nodeTip) at(ctx context.Context, height uint64) (chain.Ref, error) {
	if t.ref.Height == height {
		return t.ref, nil
	}

	return t.node.refAt(ctx, height)
}

// sharedTip returns the newest block that two nodes have, one of which has the tip. While no two have the same one of
// the last maxLag, it is fault.Unavailable (nodes_disagree). The tip counts where no other node is near it.
//
// It does not go back where the next answer comes of a backend that is behind.
func (d *driver) sharedTip(ctx context.Context, by *endpoint, tip chain.Ref) (chain.Ref, error) {
	tips := []nodeTip{{by, tip}}
	shared, isNear := chain.Ref{}, false

	err := d.nodes.AskBeside(ctx, by, 0, func(ctx context.Context, node *endpoint) (bool, error) {
		ref, err := node.latest(ctx, full)
		if err != nil {
			return false, err
		}

		said := nodeTip{node, ref}
		isNear = isNear || isWithin(tip, ref, maxLag)

		for _, other := range tips {
			if ref, err := sharedBlock(ctx, other, said); err != nil {
				return false, err
			} else if ref.Height > shared.Height {
				shared = ref
			}
		}

		tips = append(tips, said)

		return shared.Height >= tip.Height, nil
	})

	switch {
	case err != nil:
		return chain.Ref{}, err
	case !isNear:
		return tip, nil
	case shared.IsZero():
		return chain.Ref{}, d.notShared(ctx, "the newest block", len(tips))
	}

	return d.newestShared(ctx, by, tip.Height, shared), nil
}

// newestShared returns a block that two nodes have, or the later one that Head returned last, where a node with a tip
// that high still has it.
func (d *driver) newestShared(ctx context.Context, by *endpoint, tip uint64, shared chain.Ref) chain.Ref {
	last := d.lastHead.Load()
	if last == nil || last.tip.Height <= shared.Height || last.tip.Height > tip {
		return shared
	}

	if ref, err := by.refAt(ctx, last.tip.Height); err != nil || ref.Hash != last.tip.Hash {
		return shared
	}

	return last.tip
}

// isWithin reports whether two blocks are at most so many apart.
func isWithin(a, b chain.Ref, blocks uint64) bool {
	return a.Height <= b.Height+blocks && b.Height <= a.Height+blocks
}

// sharedBlock returns the newest block that two nodes have, of the last maxLag that both have reached; none where they
// are further apart, or on two branches.
func sharedBlock(ctx context.Context, a, b nodeTip) (chain.Ref, error) {
	height := min(a.ref.Height, b.ref.Height)
	if !isWithin(a.ref, b.ref, maxLag) {
		return chain.Ref{}, nil
	}

	for range min(height, maxLag) + 1 {
		one, err := a.at(ctx, height)
		if err != nil {
			return chain.Ref{}, err
		}

		another, err := b.at(ctx, height)
		if err != nil {
			return chain.Ref{}, err
		}

		if one.Hash == another.Hash {
			return one, nil
		}

		height--
	}

	return chain.Ref{}, nil
}

// head returns one endpoint's head. The solidified block is read first, so that it is never above the tip.
func (e *endpoint) head(ctx context.Context) (chain.Head, error) {
	final, err := e.latest(ctx, solidified)
	if err != nil {
		return chain.Head{}, err
	}

	tip, err := e.latest(ctx, full)
	if err != nil {
		return chain.Head{}, err
	}

	if final.Height > tip.Height {
		return chain.Head{}, e.Garbled("the tip is %d and the solidified block %d", tip.Height, final.Height)
	}

	return chain.Head{Tip: tip, Final: final}, nil
}

// latest returns the newest block of one of the node's services.
func (e *endpoint) latest(ctx context.Context, s service) (chain.Ref, error) {
	var block blockJSON

	found, err := e.post(ctx, s, "getnowblock", struct{}{}, &block)
	if err != nil {
		return chain.Ref{}, err
	}

	if !found {
		return chain.Ref{}, e.Garbled("it has no newest block")
	}

	ref, err := block.ref(e)
	if err == nil && s == full {
		e.SawTip(ref.Height)
	}

	return ref, err
}

// RefAt returns the canonical block at a height. It errors:
//   - fault.NotFound (block_unknown): the height is above the tip
//   - fault.Stopped (node_pruned): every node has pruned it
func (d *driver) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	var ref chain.Ref

	err := d.ask(ctx, height, func(ctx context.Context, node *endpoint) (err error) {
		ref, err = node.refAt(ctx, height)
		return err
	})
	if err != nil {
		return chain.Ref{}, aboveTip(err, height)
	}

	return ref, nil
}

// AgreedHead returns the newest blocks that two nodes have, and solidified ones.
func (d *driver) AgreedHead(ctx context.Context) (chain.Head, error) {
	return agree.Head(ctx, d.nodes, agree.HeadReader[*endpoint]{
		Head: func(ctx context.Context, node *endpoint) (chain.Head, error) { return node.head(ctx) },
		At:   refAt,
	})
}

// Nodes returns the state of each configured node.
func (d *driver) Nodes() []chain.NodeState { return d.nodes.States() }

func refAt(ctx context.Context, node *endpoint, height uint64) (chain.Ref, error) {
	return node.refAt(ctx, height)
}

// refAt returns the canonical block at a height at one endpoint.
func (e *endpoint) refAt(ctx context.Context, height uint64) (chain.Ref, error) {
	block, err := e.block(ctx, height)
	if err != nil {
		return chain.Ref{}, err
	}

	return block.ref(e)
}

// block returns the canonical block at a height.
func (e *endpoint) block(ctx context.Context, height uint64) (*blockJSON, error) {
	var block blockJSON

	found, err := e.post(ctx, full, "getblockbynum", numRequest{height}, &block)
	if err != nil {
		return nil, err
	}

	if !found {
		return nil, e.missingBlock(ctx, height)
	}

	ref, err := block.ref(e)
	if err == nil && ref.Height != height {
		err = e.Garbled("asked for block %d, it answered block %d", height, ref.Height)
	}

	return &block, err
}

// checkHeight returns failover.ErrLagging when the endpoint's newest block is below a height.
func checkHeight(ctx context.Context, node *endpoint, height uint64) error {
	tip, err := node.latest(ctx, full)
	if err == nil && tip.Height < height {
		err = failover.ErrLagging
	}

	return err
}

// youngDepth is the number of blocks below the tip where a missing block may still arrive, or be at another
// node of the provider. Deeper, it was pruned.
const youngDepth = 128

// missingBlock returns the error for a block that the node does not have: failover.ErrLagging, ErrPruned or a
// wrong answer.
func (e *endpoint) missingBlock(ctx context.Context, height uint64) error {
	if err := checkHeight(ctx, e, height); err != nil {
		return err
	}

	if e.KnownTip()-height < youngDepth {
		return e.Garbled("block %d is below its tip and missing", height)
	}

	return failover.ErrPruned
}

// aboveTip returns fault.NotFound (block_unknown) for failover.ErrLagging, other errors as they are.
func aboveTip(err error, height uint64) error {
	if errors.Is(err, failover.ErrLagging) {
		return fault.New(fault.NotFound, "block_unknown", "block %d is above the tip", height)
	}

	return err
}
