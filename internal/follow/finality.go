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

// finalityPatience is how long a batch waits for a reading of finality that began with it. A node that does not
// answer delays no block longer; the reading goes on, and a later batch has its result.
const finalityPatience = 2 * time.Second

// finalityRead reads the safe and the final block beside the batches, so that no block waits for them.
type finalityRead struct {
	begun time.Time // zero until begin
	stop  context.CancelFunc
	done  chan struct{}
	head  chain.Head
	err   error
}

// begin begins the reading, unless it has begun. It goes on when ctx ends.
func (f *Follower) begin(ctx context.Context, r *finalityRead) {
	if r == nil || !r.begun.IsZero() {
		return
	}

	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.begun, r.done = time.Now(), make(chan struct{})

	go func() {
		defer close(r.done)
		defer hostcall.Recover(ctx, f.Log, "Head of "+f.network.Slug, &r.err)

		r.head, r.err = f.readFinality(ctx)
	}()
}

// isDone reports whether the reading has ended. It waits until finalityPatience is over since the beginning.
func (r *finalityRead) isDone(ctx context.Context) bool {
	if r == nil || r.begun.IsZero() {
		return false
	}

	patience := time.NewTimer(finalityPatience - time.Since(r.begun))
	defer patience.Stop()

	select {
	case <-r.done:
	case <-patience.C:
	case <-ctx.Done():
	}

	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// endReading ends the reading of finality.
func (f *Follower) endReading() {
	if r := f.beside; r != nil && !r.begun.IsZero() {
		r.stop()
		<-r.done
	}

	f.beside = nil
}

// readBeside returns the reading of the safe and the final block beside the batches; nil if the driver reads them
// with the tip. It begins the reading once finalityEvery is over. New blocks on a slower network begin it, and forks
// do.
func (f *Follower) readBeside(ctx context.Context, stored scan.Cursor) *finalityRead {
	if _, ok := f.Driver.(chain.TipReader); !ok || !isFollowed(stored) {
		return nil
	}

	if f.beside == nil {
		f.beside = &finalityRead{}
	}

	if since := f.Now().Sub(f.finalityAt); since < 0 || since >= max(finalityEvery, f.Pace()) {
		f.begin(ctx, f.beside)
	}

	return f.beside
}

// fillFinality sets the safe and the final block of a batch if they were read beside it. After a fork it reads
// them in any case, as the recorded ones may have left the chain.
func (f *Follower) fillFinality(ctx context.Context, b *Batch, beside *finalityRead) error {
	if b.Rewound {
		f.begin(ctx, beside)
	}

	if !beside.isDone(ctx) {
		return nil
	}

	beside.stop()

	f.beside = nil
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
