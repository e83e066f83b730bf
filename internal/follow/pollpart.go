package follow

// This file reads by address in rounds, where every call counts: the history of each address from where it was read to.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// activeFor is how long an address is read in every round after it was made, or something moved there.
const activeFor = 30 * time.Minute

// polling is what a follower knows of its rounds. It is lost with the process, and only saves calls.
type polling struct {
	last   time.Time                // the last round of addresses at rest
	head   chain.Head               // of the last round
	behind bool                     // blocks up to the tip are left
	size   int                      // number of addresses in it
	read   map[chain.Address]uint64 // height up to which each was read
	active map[chain.Address]time.Time
	more   map[chain.Address]time.Time // to be read at once, since when
	unread map[string]health.Unread
	tries  map[string]attempt // of ranges that cannot be read, by id
}

// attempt is when a range is tried again, and how long was waited before.
type attempt struct {
	at   time.Time
	wait time.Duration
}

func newPolling() polling {
	return polling{
		read:   map[chain.Address]uint64{},
		active: map[chain.Address]time.Time{},
		more:   map[chain.Address]time.Time{},
		unread: map[string]health.Unread{},
		tries:  map[string]attempt{},
	}
}

// round is what a batch changes in polling once it is stored.
type round struct {
	addresses []chain.Address
	size      int // number of all addresses
	to        uint64
	moved     []chain.Address
	more      []chain.Address
	now       time.Time
}

// stored takes a round into account that was stored; nil does nothing.
func (p *polling) stored(r *round) {
	if r == nil {
		return
	}

	p.size = r.size
	for _, address := range r.addresses {
		if _, known := p.read[address]; !known {
			p.active[address] = r.now
		}

		p.read[address] = r.to
	}

	since := maps.Clone(p.more)
	for _, address := range r.addresses {
		delete(p.more, address)
	}

	for _, address := range r.moved {
		p.active[address] = r.now
	}

	for _, address := range r.more {
		p.more[address] = r.now
		if at, known := since[address]; known {
			p.more[address] = at
		}
	}

	for address, at := range p.active {
		if r.now.Sub(at) > activeFor {
			delete(p.active, address)
		}
	}

	if len(p.read) > 2*r.size+1000 {
		clear(p.read)
	}
}

// historyWithin is how long the rest of a history may wait to be read until it is named.
const historyWithin = 2 * time.Minute

// waiting returns the addresses whose histories were not read to their ends for long.
func (p *polling) waiting(now time.Time) (report []health.Unread) {
	for address, since := range p.more {
		if now.Sub(since) >= historyWithin {
			report = append(report, health.Unread{
				Address: string(address),
				Height:  p.read[address],
				Error:   "more of its history is still to be read",
				Since:   since,
			})
		}
	}

	return report
}

// restDue reports whether the time between two rounds is over.
func (f *Follower) restDue() bool {
	_, every := f.partial.ReadingPace(f.polling.size)

	return f.polling.last.IsZero() || !f.Now().Before(f.polling.last.Add(every))
}

// roundDue reports whether there is a reason for a round.
func (f *Follower) roundDue() bool {
	return f.polling.behind || len(f.polling.more) > 0 || f.restDue()
}

// pollPart reads the addresses whose turn it is into a batch, up to where the node is. After a fork it reads all
// of them in whole: a transfer that is not found has left the chain.
func (f *Follower) pollPart(ctx context.Context, b *Batch) (err error) {
	if b.Rewound {
		b.Blocks, err = f.poll(ctx, b.ForkedFrom, b.Head.Tip, true)
		return err
	}

	now := f.Now()

	all, err := f.Addresses(ctx, now.Add(-f.PollFor))
	if err != nil {
		return fmt.Errorf("listing the addresses of %s: %w", f.network.Slug, err)
	}

	chosen := f.chooseAddresses(all)

	positions, err := f.positionsOf(ctx, chosen)
	if err != nil {
		return err
	}

	reading, err := f.partial.ReadAddresses(ctx, chosen, b.Head.Tip.Height)
	if err != nil {
		return fmt.Errorf(
			"reading addresses up to block %d of %s: %w",
			b.Head.Tip.Height,
			f.network.Slug,
			err,
		)
	}

	b.Blocks, b.unread, b.failed = reading.Blocks, reading.Unread, reading.Failed
	b.positions = movedPositions(f.network.Slug, positions, reading.Moved, now)

	// A node that is behind may have more to say of old blocks.
	at := reading.At
	if at.Height <= b.ForkedFrom.Height {
		at = b.ForkedFrom
	}

	if err := f.checkUnmoved(ctx, b, at); err != nil {
		return err
	}

	if n := len(b.Blocks); at.Height > b.ForkedFrom.Height && (n == 0 || b.Blocks[n-1].Height < at.Height) {
		b.Blocks = append(b.Blocks, chain.Block{Ref: at})
	}

	b.round = &round{size: len(all), to: at.Height, now: now, more: reading.More}
	for _, cursor := range chosen {
		b.round.addresses = append(b.round.addresses, cursor.Address)
	}

	for _, cursor := range reading.Moved {
		b.round.moved = append(b.round.moved, cursor.Address)
	}

	return nil
}

// positionsOf sets up to where addresses were read, and returns the rows that say so.
func (f *Follower) positionsOf(
	ctx context.Context,
	chosen []chain.AddressCursor,
) (map[chain.Address]scan.Position, error) {
	rows, err := f.DB.Positions(ctx, f.network.Slug, addressesIn(chosen))
	if err != nil {
		return nil, fmt.Errorf("reading up to where addresses of %s were read: %w", f.network.Slug, err)
	}

	byAddress := map[chain.Address]scan.Position{}
	for _, row := range rows {
		byAddress[row.Address] = row
	}

	for i := range chosen {
		chosen[i].Position = byAddress[chosen[i].Address].Read
	}

	return byAddress, nil
}

// movedPositions returns the rows of cursors that moved.
func movedPositions(
	network string,
	known map[chain.Address]scan.Position,
	moved []chain.AddressCursor,
	now time.Time,
) []scan.Position {
	rows := make([]scan.Position, len(moved))

	for i, cursor := range moved {
		rows[i] = known[cursor.Address]
		rows[i].Network, rows[i].Address = network, cursor.Address
		rows[i].Read, rows[i].UpdatedAt = cursor.Position, now
	}

	return rows
}

// withPositions returns the write that moves the cursor and stores up to where addresses were read.
func withPositions(
	advance func(context.Context, scan.Tx) (scan.Cursor, error),
	positions []scan.Position,
) func(context.Context, scan.Tx) (scan.Cursor, error) {
	return func(ctx context.Context, tx scan.Tx) (scan.Cursor, error) {
		cursor, err := advance(ctx, tx)
		if err != nil {
			return cursor, err
		}

		for _, row := range positions {
			if err := tx.PutPosition(ctx, &row); err != nil {
				return cursor, err
			}
		}

		return cursor, nil
	}
}

// chooseAddresses returns the addresses of a round: those of which more is known to be left, then those never read,
// then active ones, then the others; of each kind those that were not read for longest. Between two rounds of
// addresses at rest it returns the first alone.
func (f *Follower) chooseAddresses(all []chain.AddressCursor) []chain.AddressCursor {
	perReading, _ := f.partial.ReadingPace(len(all))
	p := f.polling

	rank := func(cursor chain.AddressCursor) int {
		_, known := p.read[cursor.Address]
		_, active := p.active[cursor.Address]

		_, more := p.more[cursor.Address]

		switch {
		case more:
			return 0
		case !known:
			return 1
		case active:
			return 2
		}

		return 3
	}

	// Of an address that is not listed nothing more is read.
	listed := map[chain.Address]bool{}
	for _, cursor := range all {
		listed[cursor.Address] = len(p.more) > 0
	}

	maps.DeleteFunc(p.more, func(address chain.Address, _ time.Time) bool { return !listed[address] })

	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b chain.AddressCursor) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(p.read[a.Address], p.read[b.Address]))
	})

	if !f.restDue() {
		end := slices.IndexFunc(sorted, func(c chain.AddressCursor) bool { return rank(c) > 0 })
		if end < 0 {
			end = len(sorted)
		}

		return sorted[:min(end, perReading)]
	}

	// A quarter of each round is for those at rest, however many are active.
	rest := slices.IndexFunc(sorted, func(c chain.AddressCursor) bool { return rank(c) == 3 })
	if first := perReading * 3 / 4; rest > first {
		atRest := sorted[rest:min(len(sorted), rest+perReading-first)]
		return slices.Concat(sorted[:perReading-len(atRest)], atRest)
	}

	return sorted[:min(len(sorted), perReading)]
}

// checkUnmoved returns fault.Unavailable when the block up to which was read has left the chain meanwhile. A
// reading that found nothing need not be checked.
func (f *Follower) checkUnmoved(ctx context.Context, b *Batch, at chain.Ref) error {
	if len(b.Blocks) == 0 {
		return nil
	}

	unmoved, err := chaindata.IsCanonical(ctx, f.Driver, at)
	if err != nil {
		return fmt.Errorf("asking %s for block %d: %w", f.network.Slug, at.Height, err)
	}

	if !unmoved {
		return fault.New(
			fault.Unavailable, unlinkedCode, "block %d of %s changed while the transfers were read",
			at.Height, f.network.Slug,
		)
	}

	return nil
}
