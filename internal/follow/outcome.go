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

// Where accounts have no nonce no header binds what a transaction did: a block is one node's word. One that holds
// own transactions is stored as a scan.Range of its own, and read again until several nodes show the same
// (chain.Agreed). What they show takes the place of what was stored of it.

// outcomePrefix begins the ids of such ranges; the network's slug follows.
const outcomePrefix = "outcome-"

// Unproven returns the heights of the batch's blocks that are one node's word and can be read again. Of an old range
// there are none.
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

// RereadTx has blocks read again, in the transaction that stores the batch. Where maxRanges wait already it does
// nothing: reading on is worth more.
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
			continue // a fork brought another block there before it was read again
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

// Reread reports whether the batch is a block that was read again for its own transactions. Of these those that it
// neither holds nor names as unread are not in the block.
func (b Batch) Reread() bool { return b.Backfill != nil && isOutcome(*b.Backfill) }

// isOutcome reports whether a range is a block that is read again for its outcomes.
func isOutcome(r scan.Range) bool { return strings.HasPrefix(r.ID, outcomePrefix) }

// readOutcomes reads the block of a range as several nodes show it. While they do not, the range stays.
func (f *Follower) readOutcomes(
	ctx context.Context,
	old scan.Range,
) (blocks []chain.Block, waits bool, err error) {
	reader, ok := f.Driver.(chain.Agreed)
	if !ok {
		return nil, false, nil // configured otherwise since
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
