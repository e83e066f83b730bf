package gate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// The blocks of a network that are kept for the next signature. So a queue of payouts on a fast network reads
// each block once, not once for each payout.
const (
	// kept and keptTransfers bound the blocks that are kept, and their memory: some 10 MB a network.
	kept          = 16 << 10
	keptTransfers = 50_000
	// maxOlder and maxAge bound the older blocks that one signature reads; the larger of the two counts. A
	// payout that has waited for long on a network of many blocks must be signed in time.
	maxOlder = 1024
	maxAge   = 30 * time.Minute
	// firstOlder is the number of blocks that the first call reads; olderStep bounds that of each later one.
	firstOlder = 8
	olderStep  = 256
	// behindFor bounds how much older a node's newest block may be than a higher block that was read, for the
	// node to count as behind.
	behindFor = 30 * time.Second
	// maxNewer bounds the new blocks that are read to continue the kept ones, if a signature needs none of
	// the kept ones.
	maxNewer = 64
)

// recentBlocks are the newest blocks of a network that this process read for its signatures, linked and
// ascending.
type recentBlocks struct {
	mu     sync.Mutex
	blocks []chain.Block
}

// since visits the blocks of a network from a time on, and the marginBlocks before them, up to its tip, in
// any order. It reads at most maxOlder older blocks, or those of maxAge if these are more.
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

	before := 0 // blocks that are older than from

	look := func(b chain.Block) {
		visit(b)

		if b.Time.Before(from) {
			before++
		}
	}

	for _, b := range r.blocks {
		look(b)
	}

	read, most := uint64(0), uint64(olderStep)
	for oldest := r.blocks[0]; before < marginBlocks && oldest.Height > 1 &&
		(read < maxOlder || head.Tip.Time.Sub(oldest.Time) < maxAge); {
		step := min(blocksBetween(oldest.Ref, head.Tip, from), oldest.Height-1, most)

		older, err := readBlocks(ctx, scanner, oldest.Height-step, oldest.Height-1)
		if chaindata.IsPruned(err) && step > 1 {
			most = step / 2 // fewer may be enough, and the node may have them
			continue
		}

		if err != nil {
			return err
		}

		read += step

		if older[len(older)-1].Hash != oldest.Parent {
			r.blocks = nil
			return errFork
		}

		for _, b := range older {
			look(b)
		}

		if oldest.Hash == r.blocks[0].Hash && len(r.blocks)+len(older) <= kept {
			r.blocks = append(older, r.blocks...)
		}

		oldest = older[0]
	}

	r.forget()

	return nil
}

// blocksBetween estimates how many blocks, at most olderStep, must be read to get from the oldest known block
// to marginBlocks before a time. It uses the pace of the blocks up to the tip.
func blocksBetween(oldest, tip chain.Ref, from time.Time) uint64 {
	took, known := tip.Time.Sub(oldest.Time), tip.Height-min(tip.Height, oldest.Height)
	if took <= 0 || known < firstOlder {
		return firstOlder
	}

	left := float64(max(0, oldest.Time.Sub(from))) / float64(took) * float64(known)

	return uint64(min(left+marginBlocks, olderStep))
}

// forget drops the oldest blocks beyond kept and keptTransfers. The newest one stays.
func (r *recentBlocks) forget() {
	first, transfers := len(r.blocks)-1, len(r.blocks[len(r.blocks)-1].Transfers)
	for first > 0 && len(r.blocks)-first < kept {
		if transfers += len(r.blocks[first-1].Transfers); transfers > keptTransfers {
			break
		}

		first--
	}

	r.blocks = slices.Clone(r.blocks[first:])
}

// errFork is returned if consecutive blocks that were read are not linked.
var errFork = fault.New(
	fault.Unavailable,
	"block_moved",
	"the newest blocks were replaced while they were read",
)

// readNewer reads the blocks up to the tip. It drops blocks that a fork replaced, or that are too old to
// continue.
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

		if newest.Height > tip.Height &&
			(newest.Height-tip.Height <= marginBlocks || newest.Time.Sub(tip.Time) <= behindFor) {
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
			most = kept
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
