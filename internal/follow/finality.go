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

// fillFinality sets the safe and the final block of a batch if they were read beside it. It ignores a block
// above the batch's tip, which may be on another branch. After a fork it reads them in any case, as the
// recorded ones may have left the chain.
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

	if safe := beside.head.Safe; safe.Height <= b.Head.Tip.Height {
		b.Head.Safe = safe
	}

	if final := beside.head.Final; final.Height <= b.Head.Tip.Height {
		b.Head.Final = final
	}

	return nil
}

// readFinality returns the safe and the final block. If there are several nodes, they must agree; if they do
// not, both blocks are zero.
func (f *Follower) readFinality(ctx context.Context) (chain.Head, error) {
	agreed, ok := f.Driver.(chain.Agreed)
	if !ok || len(agreed.Nodes()) == 1 {
		return f.Driver.Head(ctx)
	}

	head, err := agreed.AgreedHead(ctx)
	if err != nil {
		return chain.Head{}, nil //nolint:nilerr // what is on record stands
	}

	return head, nil
}

// agreeFinality returns a head whose safe and final blocks nodes agree about. If they do not agree, both are
// zero, and the recorded ones stay. It asks the nodes only if one of the blocks differs from the recorded
// one.
func (f *Follower) agreeFinality(ctx context.Context, stored scan.Cursor, head chain.Head) chain.Head {
	agreed, ok := f.Driver.(chain.Agreed)
	if !ok || len(agreed.Nodes()) == 1 ||
		head.Safe.Hash == stored.Safe.Hash && head.Final.Hash == stored.Final.Hash {
		return head
	}

	shared, err := agreed.AgreedHead(ctx)
	if err != nil {
		head.Safe, head.Final = chain.Ref{}, chain.Ref{}
		return head
	}

	head.Safe, head.Final = upTo(shared.Safe, head.Tip), upTo(shared.Final, head.Tip)

	return head
}

// upTo returns a block, or the tip if the block is above it.
func upTo(block, tip chain.Ref) chain.Ref {
	if block.Height > tip.Height {
		return tip
	}

	return block
}
