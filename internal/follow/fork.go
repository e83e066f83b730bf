package follow

import (
	"context"
	"fmt"
	"sort"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// commonBlock returns the newest block that the cursor and the node agree on, and whether the chain
// forked below the cursor. A node that is merely behind is no fork. Errors:
//
//   - fault.Unavailable, node_behind: the node has only a part of what was read
//   - fault.Stopped, fork_below_finality: the fork is below the final block
//   - fault.Stopped, fork_too_deep: the fork is below every block that the cursor remembers
func (f *Follower) commonBlock(
	ctx context.Context,
	cursor scan.Cursor,
	head chain.Head,
) (base chain.Ref, forked bool, err error) {
	trusted := trustedBlocks(cursor)
	if oldest := trusted[len(trusted)-1]; oldest.Height > head.Tip.Height {
		return chain.Ref{}, false, f.behind(cursor, head)
	}

	for _, block := range trusted {
		if block.Height > head.Tip.Height {
			continue
		}

		canonical := block.Hash == head.Tip.Hash
		if block.Height < head.Tip.Height {
			if canonical, err = chaindata.IsCanonical(ctx, f.Driver, block); err != nil {
				return chain.Ref{}, false, fmt.Errorf(
					"asking %s for block %d: %w", f.network.Slug, block.Height, err,
				)
			}
		}

		if canonical {
			if err := f.checkBase(cursor, head, block, forked); err != nil {
				return chain.Ref{}, false, err
			}

			return block, forked, nil
		}

		forked = true
	}

	return chain.Ref{}, false, fault.New(
		fault.Stopped,
		"fork_too_deep",
		"the chain forked below block %d, the oldest that is remembered: none of the blocks read from "+
			"there to block %d is in the node's chain any more; the node may be on another network",
		trusted[len(trusted)-1].Height,
		cursor.At.Height,
	)
}

// trustedBlocks returns the blocks that the cursor remembers, newest first.
func trustedBlocks(cursor scan.Cursor) []chain.Ref {
	trusted := append([]chain.Ref{cursor.At}, cursor.Recent...)
	if !cursor.Final.IsZero() && cursor.Final.Height < cursor.At.Height {
		trusted = append(trusted, cursor.Final)
		sort.SliceStable(trusted, func(i, j int) bool { return trusted[i].Height > trusted[j].Height })
	}

	return trusted
}

// checkBase refuses a common block that the network may not be read on from: below the cursor without a
// fork, or below finality with one.
func (f *Follower) checkBase(cursor scan.Cursor, head chain.Head, base chain.Ref, forked bool) error {
	if !forked && base.Height < cursor.At.Height {
		// The node agrees with everything it has: it is behind, not on another branch.
		return f.behind(cursor, head)
	}

	if forked && !cursor.Final.IsZero() && base.Height < cursor.Final.Height {
		if head.Tip.Height < cursor.At.Height {
			// It was left behind on a branch of before: a real fork will outgrow the cursor.
			return f.behind(cursor, head)
		}

		return fault.New(
			fault.Stopped,
			"fork_below_finality",
			"the chain forked at block %d, below block %d which the network had called final; "+
				"compare several nodes, then resume the network",
			base.Height,
			cursor.Final.Height,
		)
	}

	return nil
}

// behind returns the error of a node that has only a part of what was read.
func (f *Follower) behind(cursor scan.Cursor, head chain.Head) error {
	return fault.New(
		fault.Unavailable,
		"node_behind",
		"the node of %s is at block %d and this service has already read block %d; waiting for the node",
		f.network.Slug,
		head.Tip.Height,
		cursor.At.Height,
	)
}

// countUnlinked counts how often in a row blocks did not link. Once is a fork while blocks were read. From the second
// time on it asks whether the block that a node showed is agreed on, so that the driver notices a node that contradicts
// itself: such a one would hold the network where it is.
func (f *Follower) countUnlinked(ctx context.Context) {
	f.unlinked++

	agreed, ok := f.Driver.(chain.Agreed)
	if !ok || f.unlinked < 2 {
		return
	}

	if _, err := agreed.AgreedBlock(ctx, f.shown, nil); err != nil {
		f.unlinked = 0
		f.Log.WarnContext(
			ctx, "the blocks of a node do not link",
			"network", f.network.Slug, "height", f.shown.Height, "error", err,
		)
	}
}
