package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
)

// On networks whose accounts have no nonce, no header commits to the effects of a transaction: one node alone
// vouches for a block. A block with own transactions is stored as a scan.Range of its own, and read again
// until several nodes show the same (chain.Agreed). That then replaces the stored contents.

// outcomePrefix begins the ids of such ranges; the network's slug follows.
const outcomePrefix = "outcome-"

// Unproven returns the heights of the batch's blocks that only one node vouches for and that can be read
// again; none for a batch of an old range.
func (b Batch) Unproven() (heights []uint64) {
	if !b.rereads || b.Backfill != nil {
		return nil
	}

	for _, block := range b.Blocks {
		for _, spend := range block.Spent {
			if spend.Shared {
				heights = append(heights, block.Height)
				break
			}
		}
	}

	return heights
}

// RereadTx queues blocks to be read again, in the transaction that stores the batch. If maxRanges wait
// already it does nothing: new blocks are more important.
func (b Batch) RereadTx(ctx context.Context, tx scan.Tx, heights []uint64) error {
	if len(heights) == 0 {
		return nil
	}

	waiting, err := tx.Ranges(ctx, b.Network.Slug, maxRanges)
	if err != nil || len(waiting)+len(heights) > maxRanges {
		return err
	}

	for _, height := range heights {
		id := fmt.Sprint(outcomePrefix, b.Network.Slug, "-", height)

		if slices.ContainsFunc(waiting, func(r scan.Range) bool { return r.ID == id }) {
			continue // a fork put another block there before it was read again
		}

		err := tx.PutRange(ctx, &scan.Range{
			ID:        id,
			Network:   b.Network.Slug,
			Next:      height,
			To:        height,
			CreatedAt: b.readAt,
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// Reread reports whether the batch is a block that was read again for its own transactions. If the block
// neither holds one of these nor lists it as unread, the transaction is not in the block.
func (b Batch) Reread() bool { return b.Backfill != nil && isOutcome(*b.Backfill) }

// isOutcome reports whether a range is a block to read again for own transactions.
func isOutcome(r scan.Range) bool { return strings.HasPrefix(r.ID, outcomePrefix) }

// readOutcomes reads the block of a range as several nodes show it. Until they agree, waits is true and the
// range stays.
func (f *Follower) readOutcomes(
	ctx context.Context,
	old scan.Range,
) (blocks []chain.Block, waits bool, err error) {
	reader, ok := f.Driver.(chain.Agreed)
	if !ok {
		return nil, false, nil // the configuration has changed since
	}

	at, err := f.Driver.RefAt(ctx, old.Next)
	if err == nil {
		var hashes []string
		if hashes, err = f.ownIn(ctx, at); err != nil {
			return nil, false, err
		}

		var block chain.Block
		if block, err = reader.AgreedBlock(ctx, at, hashes); err == nil {
			return []chain.Block{block}, false, nil
		}
	}

	switch {
	case ctx.Err() != nil:
		return nil, false, err
	case errors.Is(err, fault.Stopped):
		f.Log.WarnContext(
			ctx, "a block with own transactions cannot be read again",
			"network", f.network.Slug, "height", old.Next, "error", err,
		)

		return nil, false, nil
	case errors.Is(err, fault.Unavailable), errors.Is(err, fault.NotFound):
		return nil, true, nil // another node is behind, or down
	}

	return nil, false, err
}

// ownIn returns the hashes of the own transactions that are stored in a block.
func (f *Follower) ownIn(ctx context.Context, at chain.Ref) ([]string, error) {
	if f.Own == nil {
		return nil, nil
	}

	hashes, err := f.Own(ctx, at)
	if err != nil {
		return nil, fmt.Errorf(
			"listing own transactions in block %d of %s: %w", at.Height, f.network.Slug, err,
		)
	}

	return hashes, nil
}
