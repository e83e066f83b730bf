package gate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// The blocks of a network that are kept for the next signature: a queue of payouts on a fast network reads each
// block once, not once for each payout.
const (
	keptBlocks = maxOlder + 64
	// keptTransfers bounds the memory of the blocks that are kept: some 10 MB a network.
	keptTransfers = 50_000
	// maxOlder bounds the older blocks that one signature reads: what waited for long on a network of many blocks
	// has to be signed in time.
	maxOlder  = 1024
	olderStep = 256 // per call
	// maxNewer bounds the blocks that are read to go on from those that are kept, where a signature asks for none
	// of them.
	maxNewer = 64
)

// recentBlocks are the newest blocks of a network that this process read for its signatures, linked and ascending.
type recentBlocks struct {
	mu     sync.Mutex
	blocks []chain.Block
}

// since visits the blocks of a network from a time on up to its tip, in any order, but at most maxOlder that were not
// read yet.
func (r *recentBlocks) since(
	ctx context.Context,
	driver chain.Driver,
	scanner chain.BlockScanner,
	from time.Time,
	visit func(b chain.Block),
) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	head, err := driver.Head(ctx)
	if err != nil {
		return err
	}

	if err := r.readNewer(ctx, scanner, head.Tip, from); err != nil {
		return err
	}

	for _, b := range r.blocks {
		visit(b)
	}

	left := uint64(maxOlder)
	for oldest := r.blocks[0]; !oldest.Time.Before(from) && oldest.Height > 1 && left > 0; {
		step := min(left, olderStep)
		if every := driver.Network().BlockTime; every > 0 {
			step = min(step, 1+uint64(oldest.Time.Sub(from)/every))
		}

		step = min(step, oldest.Height-1)
		left -= step

		older, err := readBlocks(ctx, scanner, oldest.Height-step, oldest.Height-1)
		if err != nil {
			return err
		}

		if older[len(older)-1].Hash != oldest.Parent {
			r.blocks = nil
			return errFork
		}

		for _, b := range older {
			visit(b)
		}

		if oldest.Hash == r.blocks[0].Hash && len(r.blocks)+len(older) <= keptBlocks {
			r.blocks = append(older, r.blocks...)
		}

		oldest = older[0]
	}

	r.forget()

	return nil
}

// forget drops the oldest blocks beyond keptBlocks and keptTransfers. The newest one stays.
func (r *recentBlocks) forget() {
	first, transfers := len(r.blocks)-1, len(r.blocks[len(r.blocks)-1].Transfers)
	for first > 0 && len(r.blocks)-first < keptBlocks {
		if transfers += len(r.blocks[first-1].Transfers); transfers > keptTransfers {
			break
		}

		first--
	}

	r.blocks = slices.Clone(r.blocks[first:])
}

// errFork is returned when blocks that were read do not follow on one another.
var errFork = fault.New(
	fault.Unavailable,
	"block_moved",
	"the newest blocks were replaced while they were read",
)

// readNewer reads the blocks up to the tip, and drops what a fork replaced or is too old to go on from.
func (r *recentBlocks) readNewer(
	ctx context.Context,
	scanner chain.BlockScanner,
	tip chain.Ref,
	from time.Time,
) error {
	if len(r.blocks) > 0 {
		newest := r.blocks[len(r.blocks)-1]
		if newest.Hash == tip.Hash {
			return nil
		}

		if newest.Height > tip.Height && newest.Height-tip.Height <= marginBlocks {
			return fault.New(
				fault.Unavailable,
				"node_behind",
				"the node is at block %d, %d was read",
				tip.Height,
				newest.Height,
			)
		}

		most := uint64(maxNewer)
		if !newest.Time.Before(from) {
			most = maxOlder
		}

		if newest.Height < tip.Height && tip.Height-newest.Height <= most {
			newer, err := readBlocks(ctx, scanner, newest.Height+1, tip.Height)
			if err != nil {
				return err
			}

			if newer[0].Parent == newest.Hash {
				r.blocks = append(r.blocks, newer...)
				return nil
			}
		}
	}

	newest, err := readBlocks(ctx, scanner, tip.Height, tip.Height)
	if err == nil {
		r.blocks = newest
	}

	return err
}

// readBlocks reads a range of blocks, which may take several calls.
func readBlocks(
	ctx context.Context,
	scanner chain.BlockScanner,
	from, to uint64,
) (all []chain.Block, err error) {
	for from <= to {
		blocks, err := scanner.Blocks(ctx, from, to)
		if err != nil {
			return nil, err
		}

		if len(blocks) == 0 || len(all) > 0 && blocks[0].Parent != all[len(all)-1].Hash {
			return nil, errFork
		}

		all = append(all, blocks...)
		from = all[len(all)-1].Height + 1
	}

	return all, nil
}
