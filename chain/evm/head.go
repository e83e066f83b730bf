package evm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Head returns the newest, the safe and the finalized block. A node below an earlier tip is skipped
// while another one is ahead.
func (d *driver) Head(ctx context.Context) (chain.Head, error) { return d.highest(ctx, d.readHead) }

// Tip returns the newest block as Head does, with one call instead of three.
func (d *driver) Tip(ctx context.Context) (chain.Ref, error) {
	head, err := d.highest(ctx, d.readTip)

	return head.Tip, err
}

// highest returns the head of the first node that is not below an earlier tip. If there is none, it returns
// the highest head.
func (d *driver) highest(
	ctx context.Context,
	read func(ctx context.Context, node *endpoint) (chain.Head, error),
) (chain.Head, error) {
	var best chain.Head

	err := d.ask(ctx, 0, func(ctx context.Context, node *endpoint) error {
		head, err := read(ctx, node)
		if err != nil {
			return err
		}

		if best.Tip.IsZero() || head.Tip.Height > best.Tip.Height {
			best = head
		}

		if head.Tip.Height < d.nodes.Seen.Load() {
			return failover.ErrLagging
		}

		return nil
	})

	if errors.Is(err, failover.ErrLagging) { // every node has a shorter chain than before
		err = nil
	}

	if err != nil {
		return chain.Head{}, err
	}

	d.nodes.Seen.Store(best.Tip.Height)

	return best, nil
}

// readTip reads one node's newest block, without its finality.
func (d *driver) readTip(ctx context.Context, node *endpoint) (chain.Head, error) {
	latest := newCall("eth_getBlockByNumber", "latest", false)
	if err := node.do(ctx, latest); err != nil {
		return chain.Head{}, err
	}

	tip, err := latest.ref(node)
	if err != nil {
		return chain.Head{}, err
	}

	node.SawTip(tip.Height)

	return chain.Head{Tip: tip}, nil
}

// readHead reads one node's head. It asks for the final block first, so that the final block cannot be newer
// than the tip.
func (d *driver) readHead(ctx context.Context, node *endpoint) (chain.Head, error) {
	final := newCall("eth_getBlockByNumber", "finalized", false)
	safe := newCall("eth_getBlockByNumber", "safe", false)

	tip := newCall("eth_getBlockByNumber", "latest", false)
	if err := node.do(ctx, final, safe, tip); err != nil {
		return chain.Head{}, err
	}

	var head chain.Head

	shown, err := tip.ref(node)
	if err == nil {
		head.Tip = shown
		head.Safe, err = node.taggedBlock(safe, &node.safe)
	}

	if err == nil {
		head.Final, err = node.taggedBlock(final, &node.final)
	}

	if err == nil && head.Safe.IsZero() {
		head.Safe = head.Final // a final block is safe, too
	}

	if err != nil {
		return chain.Head{}, err
	}

	if head.Safe.Height > head.Tip.Height || (!head.Safe.IsZero() && head.Final.Height > head.Safe.Height) {
		return chain.Head{}, node.Garbled(
			"tip %d, safe %d, final %d", head.Tip.Height, head.Safe.Height, head.Final.Height,
		)
	}

	node.noteTags(head)
	node.SawTip(head.Tip.Height)

	return head, nil
}

// tagState records one node's answers for a finality tag.
type tagState struct {
	named atomic.Bool // the node had such a block: from then on a missing one is an error
	// apart is the last time at which the tagged block was below the tip, in nanoseconds since 1970.
	apart atomic.Int64
}

// taggedBlock returns the block of a finality tag, or zero if this node never had one. If the node had one
// before, its absence is an error: a fallback to depth could weaken the rule. Any refusal other than for a
// missing tag is an error too.
func (e *endpoint) taggedBlock(rpcCall *call, tag *tagState) (chain.Ref, error) {
	if rpcCall.err != nil && !hasNoTag(rpcCall.err) {
		return chain.Ref{}, rpcCall.err
	}

	if rpcCall.isNull() || rpcCall.err != nil {
		if tag.named.Load() {
			return chain.Ref{}, e.Garbled("it no longer names its %s block", rpcCall.args[0])
		}

		return chain.Ref{}, nil
	}

	ref, err := rpcCall.ref(e)
	if err == nil {
		tag.named.Store(true)
	}

	return ref, err
}

// uncertainAfter is the time for which the safe or final block may equal the tip before Nodes reports the
// node for it.
const uncertainAfter = 24 * time.Hour

// noteTags marks the node as uncertain if its safe or final block equalled the tip for uncertainAfter. Such a
// node may call every block safe or final.
func (e *endpoint) noteTags(head chain.Head) {
	var why string

	for _, tag := range []struct {
		name  string
		ref   chain.Ref
		state *tagState
	}{{"safe", head.Safe, &e.safe}, {"finalized", head.Final, &e.final}} {
		now := time.Now()
		if tag.ref.Height < head.Tip.Height || tag.state.apart.Load() == 0 {
			tag.state.apart.Store(now.UnixNano())
		}

		if !tag.ref.IsZero() && now.Sub(time.Unix(0, tag.state.apart.Load())) >= uncertainAfter {
			why = fmt.Sprintf("its %s block has been its newest one for a day", tag.name)
		}
	}

	e.Note(chain.NodeUncertain, why != "", why)
}

// RefAt returns the canonical block at a height. Errors:
//
//   - fault.NotFound (block_unknown): above the tip
//   - fault.Stopped (node_pruned): no node has the height any more
func (d *driver) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	var ref chain.Ref

	err := d.ask(ctx, height, func(ctx context.Context, node *endpoint) (err error) {
		ref, err = node.refAt(ctx, height)
		return err
	})

	return ref, unknownBlock(err, height)
}

// ref returns the block whose header answers the call.
func (c *call) ref(node *endpoint) (chain.Ref, error) {
	var header headerJSON
	if err := c.decode(node, &header); err != nil {
		return chain.Ref{}, err
	}

	return header.ref(node)
}

// refAt returns one node's block at a height.
func (e *endpoint) refAt(ctx context.Context, height uint64) (chain.Ref, error) {
	rpcCall := newCall("eth_getBlockByNumber", hexutil.Uint64(height), false)
	if err := e.do(ctx, rpcCall); err != nil {
		return chain.Ref{}, err
	}

	if rpcCall.isNull() || rpcCall.err != nil {
		return chain.Ref{}, e.missingBlock(ctx, height, rpcCall)
	}

	ref, err := rpcCall.ref(e)
	if err == nil && ref.Height != height {
		err = e.Garbled("asked for block %d, it answered block %d", height, ref.Height)
	}

	return ref, err
}

// Minimum depth of a missing block to conclude that the node pruned it, in blocks and by their times. A
// shallower block may still be imported. The nodes behind one URL are seldom ten minutes apart, and nodes
// that prune keep days.
const (
	maxSyncDepth = 128
	maxSyncTime  = 10 * time.Minute
)

// missingBlock returns the reason why a node does not have a block: pruned, lagging, refused or inconsistent.
func (e *endpoint) missingBlock(ctx context.Context, height uint64, rpcCall *call) error {
	if refusal, ok := errors.AsType[*failover.Refusal](rpcCall.err); ok {
		if refusal.Code == codePruned {
			return failover.ErrPruned
		}

		return rpcCall.err
	}

	if err := refreshTip(ctx, e, height); err != nil {
		return err
	}

	tip := e.KnownTip()
	if tip < height+maxSyncDepth { // another call may have read a lower tip meanwhile
		return e.Garbled("block %d is below its tip and missing", height)
	}

	age, err := e.ageOf(ctx, height, tip)
	if err != nil {
		return err
	}

	if age < maxSyncTime {
		return e.Garbled("block %d is below its tip, some %s old and missing", height, age.Round(time.Second))
	}

	return failover.ErrPruned
}

// ageOf estimates the age of a missing block that is well below a node's tip, from the pace of the node's
// newest blocks.
func (e *endpoint) ageOf(ctx context.Context, height, tip uint64) (time.Duration, error) {
	var times [2]time.Time

	for i, known := range []uint64{tip, tip - maxSyncDepth/2} {
		rpcCall := newCall("eth_getBlockByNumber", hexutil.Uint64(known), false)
		if err := e.do(ctx, rpcCall); err != nil {
			return 0, err
		}

		ref, err := rpcCall.ref(e)
		if err != nil {
			return 0, err
		}

		times[i] = ref.Time
	}

	return times[0].Sub(times[1]) / (maxSyncDepth / 2) * time.Duration(tip-height), nil
}

// unknownBlock returns failover.ErrLagging as fault.NotFound (block_unknown), others unchanged.
func unknownBlock(err error, height uint64) error {
	if errors.Is(err, failover.ErrLagging) {
		return fault.New(fault.NotFound, "block_unknown", "block %d is above the tip", height)
	}

	return err
}
