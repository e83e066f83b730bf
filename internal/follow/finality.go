package follow

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
)

// finalityEvery is the interval at which the safe and the final block are read on a fast network, and while
// no new block comes.
const finalityEvery = 3 * time.Second

// finalityRead reads the safe and the final block concurrently with a batch, so that no block waits for them.
// Its methods do nothing on nil, for a driver that reads them with the tip.
type finalityRead struct {
	read func() (chain.Head, error)
	done chan struct{} // nil until begin
	head chain.Head
	err  error
}

// begin begins the reading, unless it has begun.
func (r *finalityRead) begin() {
	if r == nil || r.done != nil {
		return
	}

	r.done = make(chan struct{})

	go func() {
		defer close(r.done)

		r.head, r.err = r.read()
	}()
}

// isBegun waits for the end of the reading, and reports whether there was one.
func (r *finalityRead) isBegun() bool {
	if r == nil || r.done == nil {
		return false
	}

	<-r.done

	return true
}

// readBeside returns a reading of the safe and the final block beside a batch; nil if the driver reads them
// with the tip. It begins the reading once finalityEvery is over. Otherwise new blocks on a slower network
// begin it, and forks do. end stops the reading.
func (f *Follower) readBeside(ctx context.Context, stored scan.Cursor) (r *finalityRead, end func()) {
	if _, ok := f.Driver.(chain.TipReader); !ok || !isFollowed(stored) {
		return nil, func() {}
	}

	ctx, stop := context.WithCancel(ctx)

	r = &finalityRead{read: func() (head chain.Head, err error) {
		defer hostcall.Recover(ctx, f.Log, "Head of "+f.network.Slug, &err)

		return f.readFinality(ctx)
	}}

	if since := f.Now().Sub(f.finalityAt); since < 0 || since >= max(finalityEvery, f.Pace()) {
		r.begin()
	}

	return r, func() {
		stop()
		r.isBegun()
	}
}

// fillFinality sets the safe and the final block of a batch if they were read beside it. After a fork it reads
// them in any case, as the recorded ones may have left the chain.
func (f *Follower) fillFinality(b *Batch, beside *finalityRead) error {
	if b.Rewound {
		beside.begin()
	}

	if !beside.isBegun() {
		return nil
	}

	if beside.err != nil {
		return fmt.Errorf("asking %s for its finality: %w", f.network.Slug, beside.err)
	}

	f.finalityAt = f.Now()
	b.Head.Safe, b.Head.Final = beside.head.Safe, beside.head.Final

	return nil
}

// readFinality returns the safe and the final block. If there are several nodes, they must agree; if they do
// not, both blocks are zero, and the recorded ones stay.
func (f *Follower) readFinality(ctx context.Context) (chain.Head, error) {
	agreed, ok := f.agreed()
	if !ok {
		return f.Driver.Head(ctx)
	}

	head, err := agreed.AgreedHead(ctx)
	if err != nil {
		return chain.Head{}, nil //nolint:nilerr // what is on record stands
	}

	return head, nil
}

// agreeFinality returns a head with the safe and the final block of readFinality. It asks the nodes only if one
// of the blocks differs from the recorded one.
func (f *Follower) agreeFinality(ctx context.Context, stored scan.Cursor, head chain.Head) (chain.Head, error) {
	_, ok := f.agreed()
	if !ok || head.Safe.Hash == stored.Safe.Hash && head.Final.Hash == stored.Final.Hash {
		return head, nil
	}

	shared, err := f.readFinality(ctx)
	head.Safe, head.Final = shared.Safe, shared.Final

	return head, err
}

// agreed returns the driver as chain.Agreed; ok is false if it has no second node to compare with.
func (f *Follower) agreed() (agreed chain.Agreed, ok bool) {
	agreed, ok = f.Driver.(chain.Agreed)

	return agreed, ok && len(agreed.Nodes()) > 1
}

// proveFinality leaves in a head only safe and final blocks of the branch that was read. The blocks come from
// one node, and what two nodes call final may be on another branch. next is the cursor with these blocks. A block
// is on its branch if the cursor remembers it, or if two nodes have the next remembered block above it. For a
// block above the cursor, the cursor's own block takes its place.
func (f *Follower) proveFinality(ctx context.Context, next scan.Cursor, head *chain.Head) {
	agreed, ok := f.agreed()
	if !ok || next.At.IsZero() {
		head.Safe, head.Final = below(head.Safe, head.Tip), below(head.Final, head.Tip)
		return
	}

	var proven chain.Ref // the lowest remembered block that two nodes have

	onBranch := func(ref chain.Ref) chain.Ref {
		above := next.At

		for _, block := range next.Recent {
			if block.Height >= ref.Height {
				above = block
			}
		}

		switch {
		case ref.IsZero() || ref.Hash == above.Hash || ref.Hash == next.Safe.Hash || ref.Hash == next.Final.Hash:
			return ref
		case above.Height < ref.Height:
			ref = above
		}

		if above.Hash != proven.Hash {
			if _, err := agreed.AgreedBlock(ctx, above, nil); err != nil {
				return chain.Ref{}
			}

			proven = above
		}

		return ref
	}

	head.Safe, head.Final = onBranch(head.Safe), onBranch(head.Final)
}

// below returns a block, or none if it is above the tip.
func below(block, tip chain.Ref) chain.Ref {
	if block.Height > tip.Height {
		return chain.Ref{}
	}

	return block
}
