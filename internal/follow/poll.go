package follow

// Sight by address, for networks whose blocks are too heavy to be read whole.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
)

// Nodes may show a transaction of an address late. So once in a while everything since the last
// such reading is read again, with some blocks more.
const (
	rereadEvery = time.Minute
	rereadMore  = 150
)

// reread is when, and from which height on, blocks are read again.
type reread struct {
	at   time.Time
	from uint64
}

// poll reads the transfers to our addresses above base, and some blocks from below it again. The
// tip ends the list, so that the cursor stands there afterwards. After a fork every address there
// ever was is asked for: what is not found again has left the chain.
func (f *Follower) poll(ctx context.Context, base, tip chain.Ref, forked bool) ([]chain.Block, error) {
	now := f.Now()
	since, from := now.Add(-f.PollFor), base.Height+1

	again := now.Sub(f.reread.at) >= rereadEvery
	switch {
	case forked:
		since = time.Time{}
	case again:
		from = min(from, max(f.reread.from, 1))
		if f.reread.at.IsZero() {
			from -= min(from-1, rereadMore)
		}
	}

	addresses, err := f.Addresses(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("listing the addresses of %s: %w", f.network.Slug, err)
	}

	blocks, err := f.transfers(ctx, addresses, from, tip.Height)
	if err != nil {
		return nil, err
	}
	// The tip is still where it was, so everything in between was read of this one chain.
	ref, err := f.Driver.RefAt(ctx, tip.Height)
	if err != nil {
		return nil, fmt.Errorf("asking %s for block %d: %w", f.network.Slug, tip.Height, err)
	}

	if ref.Hash != tip.Hash {
		return nil, fault.New(
			fault.Unavailable, "blocks_not_linked",
			"block %d of %s changed while the transfers were read",
			tip.Height, f.network.Slug,
		)
	}

	if n := len(blocks); n == 0 || blocks[n-1].Height < tip.Height {
		blocks = append(blocks, chain.Block{Ref: tip})
	}

	if again || forked {
		f.reread = reread{at: now, from: tip.Height + 1 - min(tip.Height, rereadMore)}
	}

	return blocks, nil
}

// transfers asks for addresses, and makes sure that the answer is in order.
func (f *Follower) transfers(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	if len(addresses) == 0 {
		return nil, nil
	}

	blocks, err := f.poller.TransfersTo(ctx, addresses, from, to)
	if err != nil {
		return nil, fmt.Errorf(
			"reading the transfers of blocks %d to %d of %s: %w",
			from, to, f.network.Slug, err,
		)
	}

	for i, b := range blocks {
		if b.Height < from || b.Height > to || (i > 0 && b.Height <= blocks[i-1].Height) {
			return nil, fault.New(
				fault.Unavailable, "blocks_not_linked",
				"the node of %s answered block %d out of order or range",
				f.network.Slug, b.Height,
			)
		}
	}

	return blocks, nil
}

// old reads a stretch of an old range again; its last block is the last that was read.
func (f *Follower) old(ctx context.Context, r scan.Range, to uint64) ([]chain.Block, error) {
	if f.scanner != nil {
		return f.scanner.Blocks(ctx, r.Next, to)
	}

	blocks, err := f.transfers(ctx, r.Addresses, r.Next, to)
	if err != nil || (len(blocks) > 0 && blocks[len(blocks)-1].Height == to) {
		return blocks, err
	}

	last, err := f.Driver.RefAt(ctx, to)

	return append(blocks, chain.Block{Ref: last}), err
}

// above leaves out the blocks up to a height.
func above(blocks []chain.Block, height uint64) []chain.Block {
	i := slices.IndexFunc(blocks, func(b chain.Block) bool { return b.Height > height })
	if i < 0 {
		return nil
	}

	return blocks[i:]
}
