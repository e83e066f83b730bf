package follow

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
)

// readBatch returns the next batch, or nil when there is nothing new.
func (f *Follower) readBatch(ctx context.Context, stored scan.Cursor) (*Batch, error) {
	beside := f.readBeside(ctx, stored)

	head, err := f.readHead(ctx, stored, beside)
	if err != nil {
		return nil, fmt.Errorf("asking %s for its tip: %w", f.network.Slug, err)
	}

	f.shown = head.Tip

	cursor, base, forked, err := f.startOfBatch(ctx, stored, head)
	if err != nil {
		return nil, err
	}

	b := &Batch{Network: f.network, Head: head, Rewound: forked, ForkedFrom: base, readAt: f.Now()}
	_, b.rereads = f.Driver.(chain.Agreed)

	linked, err := f.fillBlocks(ctx, b, stored)
	if err == nil {
		err = f.fillFinality(ctx, b, beside)
	}

	if err != nil {
		return nil, err
	}

	branch := branchOf(cursor, b)
	f.proveFinality(ctx, branch, &b.Head)

	head, base, forked = b.Head, b.ForkedFrom, b.Rewound

	next := f.nextCursor(cursor, branch, b)
	if !linked || contradicts(next, head.Safe) || contradicts(next, head.Final) {
		// The chain forked between the two calls: the next step finds the fork. What is final on one branch says
		// nothing of another.
		f.countUnlinked(ctx)
		return nil, nil
	}

	if forked {
		f.Log.WarnContext(
			ctx, "a fork was found; blocks above the common one are read again",
			"network", f.network.Slug, "common_height", base.Height, "was_at", cursor.At.Height,
			"depth", cursor.At.Height-base.Height,
		)
	}

	if f.partial == nil || f.restDue() && b.failed == nil {
		f.polling.last = f.Now()
	}

	f.unlinked, f.polling.head = 0, head
	f.polling.behind = f.scanner != nil && next.At.Height < head.Tip.Height
	poolChanged := f.fillPool(ctx, b, next)

	headMoved := next.Tip.Height != cursor.Tip.Height || next.Safe.Hash != cursor.Safe.Hash ||
		next.Final.Hash != cursor.Final.Hash

	moved := len(b.Blocks)+len(b.positions)+len(b.unread) > 0
	if isFollowed(stored) && !forked && !moved && !poolChanged && !headMoved {
		f.polling.stored(b.round)
		return nil, b.failed
	}

	b.Next = next
	b.advance = f.withUnread(f.advanceTo(stored, next), b)

	if len(b.positions) > 0 {
		b.advance = withPositions(b.advance, b.positions)
	}

	return b, nil
}

// readHead returns the head of the network, without finality if that is read beside. If several nodes have to agree
// about finality, they are asked once one of the blocks differs from the recorded one.
func (f *Follower) readHead(
	ctx context.Context,
	stored scan.Cursor,
	beside *finalityRead,
) (head chain.Head, err error) {
	tips, ok := f.Driver.(chain.TipReader)
	if ok && beside != nil {
		if head.Tip, err = tips.Tip(ctx); err == nil && !f.IsFast() && head.Tip.Hash != stored.Tip.Hash {
			f.begin(ctx, beside)
		}

		return head, err
	}

	head, err = f.Driver.Head(ctx)

	_, several := f.agreed()
	if err != nil || !several || head.Safe.Hash == stored.Safe.Hash && head.Final.Hash == stored.Final.Hash {
		return head, err
	}

	shared, err := f.readFinality(ctx)
	head.Safe, head.Final = shared.Safe, shared.Final

	return head, err
}

// isFollowed reports whether any block of a network was ever read. A network that was stopped before that has
// a cursor without a block.
func isFollowed(cursor scan.Cursor) bool { return !cursor.At.IsZero() }

// startOfBatch returns the cursor that a batch moves, and the block above which it is read. If there are
// blocks above the last one that was read, it makes no call: the first of them shows whether that one is
// still in the chain.
func (f *Follower) startOfBatch(ctx context.Context, stored scan.Cursor, head chain.Head) (
	cursor scan.Cursor,
	base chain.Ref,
	forked bool,
	err error,
) {
	if !isFollowed(stored) {
		cursor, err = f.firstCursor(ctx, head)
		return cursor, cursor.At, false, err
	}

	if f.scanner != nil && head.Tip.Height > stored.At.Height {
		return stored, stored.At, false, nil
	}

	base, forked, err = f.commonBlock(ctx, stored, head)

	return stored, base, forked, err
}

// fillBlocks reads the blocks above the common one into the batch. If the first of them is not its child, the
// chain forked, and they are read above another common block. linked is false if the chain forked while it
// was read.
func (f *Follower) fillBlocks(ctx context.Context, b *Batch, stored scan.Cursor) (linked bool, err error) {
	base, tip := b.ForkedFrom, b.Head.Tip

	switch {
	case f.scanner == nil && f.partial != nil:
		return true, f.pollPart(ctx, b)
	case f.scanner == nil && base.Height < tip.Height:
		b.Blocks, err = f.poll(ctx, base, tip, b.Rewound)
		return true, err
	case base.Height >= tip.Height:
		return true, nil
	}

	if linked, err = f.fillAbove(ctx, b, stored); err != nil || linked {
		return linked, err
	}

	if !isFollowed(stored) {
		return false, nil
	}

	if b.ForkedFrom, b.Rewound, err = f.commonBlock(ctx, stored, b.Head); err != nil || !b.Rewound {
		return false, err
	}

	return f.fillAbove(ctx, b, stored)
}

// fillAbove reads the blocks above the common one into the batch. linked is false if the first of them is not
// the child of the block that was read last.
func (f *Follower) fillAbove(ctx context.Context, b *Batch, stored scan.Cursor) (linked bool, err error) {
	base, tip := b.ForkedFrom, b.Head.Tip

	// After a fork everything up to the old position is read at once, so that a transfer that only moved to
	// another block does not look lost.
	to := base.Height + f.size.now
	if b.Rewound {
		to = max(to, stored.At.Height)
	}

	if b.Blocks, err = f.readBlocks(ctx, base, min(to, tip.Height)); err != nil {
		return false, err
	}

	return b.Rewound || len(b.Blocks) == 0 || b.Blocks[0].Parent == base.Hash, nil
}

// readBlocks returns the canonical blocks after base up to height to. An ordinary batch is the answer of one
// call. If the blocks do not link, the error is fault.Unavailable.
func (f *Follower) readBlocks(ctx context.Context, base chain.Ref, to uint64) ([]chain.Block, error) {
	var all []chain.Block

	for next := base.Height + 1; next <= to; {
		part, err := f.scanner.Blocks(ctx, next, to)
		if err != nil {
			return nil, fmt.Errorf("reading blocks %d to %d of %s: %w", next, to, f.network.Slug, err)
		}

		for i, block := range part {
			if len(all) == 0 || all[len(all)-1].Hash != block.Parent {
				f.shown = block.Ref
			}

			if block.Height != next+uint64(i) {
				return nil, fault.New(
					fault.Unavailable, unlinkedCode, "the node of %s left a gap before block %d",
					f.network.Slug, block.Height,
				)
			}

			if n := len(all); n > 0 && all[n-1].Hash != block.Parent {
				return nil, fault.New(
					fault.Unavailable, unlinkedCode,
					"block %d of %s is not the child of the one before it; the chain moved while it was read",
					block.Height, f.network.Slug,
				)
			}

			all = append(all, block)
		}

		if len(part) == 0 {
			return nil, fault.New(
				fault.Unavailable, unlinkedCode, "the node of %s answered no block for height %d",
				f.network.Slug, next,
			)
		}

		next = all[len(all)-1].Height + 1
		if uint64(len(all)) >= f.size.now && to-base.Height <= f.size.now {
			break
		}
	}

	return all, nil
}

// fillPool reads the pool into a batch that reaches the tip, and reports whether the pool changed since it
// was last stored. A pool that cannot be read is only logged. On a fast network, if a look finds several
// blocks, the pool is not read: the next block empties it first.
func (f *Follower) fillPool(ctx context.Context, b *Batch, next scan.Cursor) (changed bool) {
	mempool, ok := f.Driver.(chain.Mempool)
	if !ok || next.At.Height != b.Head.Tip.Height || f.IsFast() && len(b.Blocks) > 1 {
		return false
	}

	txs, err := mempool.Pool(ctx)
	if err != nil {
		f.Log.WarnContext(ctx, "the pool could not be read", "network", f.network.Slug, "error", err)
		return false
	}

	b.Pool, b.PoolRead = txs, true

	return poolHash(txs) != f.poolSeen
}

// poolHash returns a sum (FNV-1a) over the transaction hashes of a pool, regardless of their order.
func poolHash(txs []chain.PoolTx) uint64 {
	sum := uint64(1)

	for _, tx := range txs {
		hash := fnv.New64a()
		hash.Write([]byte(tx.TxHash))
		sum += hash.Sum64()
	}

	return sum
}
