package follow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
)

// maxRanges is how many ranges are looked at for one that can be read.
const maxRanges = 256

// backfill reads one stretch of an old range again, and reports whether there was one.
func (f *Follower) backfill(ctx context.Context) (bool, error) {
	ranges, err := f.DB.Ranges(ctx, f.network.Slug, maxRanges)
	if err != nil {
		return false, err
	}

	now := f.Now()

	ranges = slices.DeleteFunc(
		ranges,
		func(r scan.Range) bool { return now.Before(f.polling.tries[r.ID].at) },
	)
	if len(ranges) == 0 {
		return false, nil
	}

	watched, end := WhileAnswering(ctx, f.Driver)
	defer func() { _ = end(nil) }()

	head, err := f.backfillHead(watched)
	if err != nil {
		return false, end(err)
	}

	// A range may reach above the tip (addresses made inside a host's transaction); that part waits.
	at := slices.IndexFunc(
		ranges, func(r scan.Range) bool { return r.Next <= head.Tip.Height || r.Next > r.To },
	)
	if at < 0 {
		return false, nil
	}

	old := ranges[at]
	b := Batch{Network: f.network, Head: head, Backfill: &old}

	done, err := f.readRange(watched, &b, old)
	if err = end(err); err != nil {
		return false, fmt.Errorf("reading old blocks from %d of %s again: %w", old.Next, f.network.Slug, err)
	}

	b.advance = f.advanceRange(old, done)
	if err := f.store(ctx, b); err != nil {
		return false, fmt.Errorf("storing old blocks from %d of %s: %w", old.Next, f.network.Slug, err)
	}

	if done.next == old.Next && done.next <= old.To {
		f.polling.putOff(old.ID, now)
		return false, nil
	}

	delete(f.polling.tries, old.ID)

	return true, nil
}

// backfillHead returns the head up to which ranges are read: that of the last round where calls count.
func (f *Follower) backfillHead(ctx context.Context) (chain.Head, error) {
	if f.partial != nil && !f.polling.head.Tip.IsZero() {
		return f.polling.head, nil
	}

	return f.Driver.Head(ctx)
}

// rangeRead is how far a range was read.
type rangeRead struct {
	next   uint64         // the first height that is left
	unread []chain.Unread // stored as ranges of their own
	pruned bool           // no node has the blocks before next: they are stored as a range of their own
}

// readRange reads one stretch of a range into a batch. Where that fails the range stays, and holds up no other one.
func (f *Follower) readRange(ctx context.Context, b *Batch, old scan.Range) (done rangeRead, err error) {
	if old.Next > old.To {
		return rangeRead{next: old.Next}, nil
	}

	to := min(old.To, old.Next+f.size.now-1, b.Head.Tip.Height)

	addresses, err := f.addressesOf(ctx, old)
	if err != nil {
		return rangeRead{}, err
	}

	switch {
	case isOutcome(old):
		var waits bool
		if b.Blocks, waits, err = f.readOutcomes(ctx, old); err != nil || waits {
			return rangeRead{next: old.Next}, err
		}

		done.next = old.Next + 1
	case f.scanner == nil && f.partial != nil:
		to = min(old.To, old.Next+rangeBlocks, b.Head.Tip.Height)
		b.Blocks, err = f.transfers(ctx, addresses, old.Next, to)
		done.next = to + 1
	default:
		b.Blocks, err = f.readOldBlocks(ctx, addresses, old.Next, to)

		done.next = old.Next
		if n := len(b.Blocks); n > 0 {
			done.next = b.Blocks[n-1].Height + 1
		}
	}

	if err != nil {
		return f.leaveRange(ctx, old, min(old.To, b.Head.Tip.Height), err)
	}

	unread := unreadOf(b.Blocks)

	f.polling.clearUnread(old.Addresses, old.Next, done.next-min(done.next, 1))
	f.polling.noteUnread(unread, f.Now())

	// A range of one address or of one block stays where it cannot be read; of a longer one that part is split off.
	single := len(old.Addresses) == 1 || old.Next == old.To
	for _, u := range unread {
		if single {
			done.next = min(done.next, max(u.Height, old.Next))
		} else {
			done.unread = append(done.unread, u)
		}
	}

	return done, nil
}

// unreadOf returns what could not be read of whole blocks.
func unreadOf(blocks []chain.Block) (unread []chain.Unread) {
	for _, block := range blocks {
		for _, u := range block.Unread {
			u.Height = block.Height
			unread = append(unread, u)
		}
	}

	return unread
}

// rangeBlocks is how many blocks of a range are read by address at once.
const rangeBlocks = 1200

// leaveRange returns how far a range was read whose first blocks could not be, and names those. Where no node has them
// any more it goes on at the first one up to a height that a node has.
func (f *Follower) leaveRange(
	ctx context.Context,
	old scan.Range,
	to uint64,
	why error,
) (done rangeRead, err error) {
	done.next = old.Next

	if chaindata.IsPruned(why) {
		if held, err := chaindata.OldestHeld(ctx, f.Driver, old.Next, to); err == nil {
			done.next, done.pruned = held.Height, held.Height > old.Next
		}
	}

	if ctx.Err() != nil {
		return rangeRead{}, why
	}

	addresses := old.Addresses
	if len(addresses) == 0 && !scanstate.IsGap(old) { // Health names gaps from the store
		addresses = []chain.Address{""}
	}

	for _, address := range addresses {
		if address == "" || !f.polling.isUnread(address) {
			f.polling.noteUnread(
				[]chain.Unread{{Address: address, Height: old.Next, Why: why.Error()}},
				f.Now(),
			)
		}
	}

	return done, nil
}

// advanceRange returns the write that moves the range past what was read, or deletes it at its end.
func (f *Follower) advanceRange(
	old scan.Range,
	done rangeRead,
) func(context.Context, scan.Tx) (scan.Cursor, error) {
	taken := f.lease

	return func(ctx context.Context, tx scan.Tx) (scan.Cursor, error) {
		if err := leases.Check(ctx, tx, taken); err != nil {
			return scan.Cursor{}, err
		}

		cursor, _, err := tx.Cursor(ctx, f.network.Slug)
		if err != nil {
			return scan.Cursor{}, err
		}

		for _, u := range done.unread {
			if err := f.putUnread(ctx, tx, u, max(u.Height, done.next-1)); err != nil {
				return cursor, err
			}
		}

		moved := old
		moved.Next = done.next

		if done.pruned {
			if err := tx.PutRange(ctx, prunedPart(old, done.next)); err != nil {
				return cursor, err
			}
		}

		if moved.Next > moved.To {
			return cursor, tx.DeleteRange(ctx, moved.ID)
		}

		return cursor, tx.PutRange(ctx, &moved)
	}
}

// prunedPart returns the part of a range below a height, as a range of its own.
func prunedPart(old scan.Range, height uint64) *scan.Range {
	whole, _, _ := strings.Cut(old.ID, "/")

	part := old
	part.ID, part.To, part.Version = fmt.Sprintf("%s/%d", whole, height), height-1, 0

	return &part
}

// addressesOf returns the addresses that a range is read for by address: all of them for a gap. Blocks have them all.
func (f *Follower) addressesOf(ctx context.Context, old scan.Range) ([]chain.Address, error) {
	if f.scanner != nil || !scanstate.IsGap(old) {
		return old.Addresses, nil
	}

	listed, err := f.Addresses(ctx, time.Time{})
	if err != nil {
		return nil, fmt.Errorf("listing the addresses of %s: %w", f.network.Slug, err)
	}

	return addressesIn(listed), nil
}

// readOldBlocks reads blocks up to height to again; the last block returned is the last read.
func (f *Follower) readOldBlocks(
	ctx context.Context,
	addresses []chain.Address,
	from, to uint64,
) ([]chain.Block, error) {
	if f.scanner != nil {
		return f.scanner.Blocks(ctx, from, to)
	}

	blocks, err := f.transfers(ctx, addresses, from, to)
	if err != nil || (len(blocks) > 0 && blocks[len(blocks)-1].Height == to) {
		return blocks, err
	}

	last, err := f.Driver.RefAt(ctx, to)

	return append(blocks, chain.Block{Ref: last}), err
}
