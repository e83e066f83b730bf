package follow

// This file reads transfers by address, for networks whose blocks are too heavy to be read whole.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
)

// Nodes may show a transaction of an address late. So every rereadEvery everything since the last
// such reading is read again, and the blocks of rereadMore before it.
const (
	rereadEvery = time.Minute
	rereadMore  = time.Minute
)

// reread stores when blocks were last read again, and from which height they are the next time.
type reread struct {
	at   time.Time
	from uint64
}

// poll returns the blocks above base with transfers to our addresses, and now and then some from below base
// again. The tip ends the list, so that the cursor stands there afterwards. After a fork every address ever
// made is queried: a transfer that is not found has left the chain. It fails with fault.Unavailable when the
// tip changed meanwhile.
func (f *Follower) poll(ctx context.Context, base, tip chain.Ref, forked bool) ([]chain.Block, error) {
	now := f.Now()
	since, from := now.Add(-f.PollFor), base.Height+1
	more := scanstate.BlocksAt(f.Pace(), rereadMore)

	due := now.Sub(f.reread.at) >= rereadEvery
	switch {
	case forked:
		since = time.Time{}
	case due:
		if !f.reread.at.IsZero() {
			from = min(from, max(f.reread.from, 1))
		} else {
			from -= min(from-1, more)
		}
	}

	listed, err := f.Addresses(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("listing the addresses of %s: %w", f.network.Slug, err)
	}

	addresses := addressesIn(listed)

	blocks, err := f.transfers(ctx, addresses, from, tip.Height)
	if chaindata.IsPruned(err) && from <= base.Height {
		blocks, err = f.transfers(ctx, addresses, base.Height+1, tip.Height) // what was read before is gone
	}

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
			fault.Unavailable, unlinkedCode,
			"block %d of %s changed while the transfers were read",
			tip.Height, f.network.Slug,
		)
	}

	if n := len(blocks); n == 0 || blocks[n-1].Height < tip.Height {
		blocks = append(blocks, chain.Block{Ref: tip})
	}

	if due || forked {
		f.reread = reread{at: now, from: tip.Height + 1 - min(tip.Height, more)}
	}

	return blocks, nil
}

// addressesIn returns the addresses of cursors, in order.
func addressesIn(cursors []chain.AddressCursor) []chain.Address {
	addresses := make([]chain.Address, len(cursors))
	for i, cursor := range cursors {
		addresses[i] = cursor.Address
	}

	return addresses
}

// transfers returns the blocks with transfers to addresses. It fails with fault.Unavailable when
// the answer is out of order or range.
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

	for i, block := range blocks {
		if block.Height < from || block.Height > to || (i > 0 && block.Height <= blocks[i-1].Height) {
			return nil, fault.New(
				fault.Unavailable, unlinkedCode,
				"the node of %s answered block %d out of order or range",
				f.network.Slug, block.Height,
			)
		}
	}

	return blocks, nil
}
