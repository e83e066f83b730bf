package follow

// This file reads by address in rounds, where every call counts and readings may be incomplete.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
)

const (
	// lookBack is how many blocks below the cursor an address is read that this process has not read yet. No
	// address is read later than half of it after another, so that a restart misses nothing.
	lookBack = 1200

	// activeFor is how long an address is read in every round after it was made, or something moved there.
	activeFor = 30 * time.Minute
)

// polling is what a follower knows of its rounds. It is lost with the process, and only saves calls.
type polling struct {
	last   time.Time                // the last round
	head   chain.Head               // of the last round
	behind bool                     // blocks up to the tip are left
	size   int                      // number of addresses in it
	read   map[chain.Address]uint64 // height up to which each was read
	active map[chain.Address]time.Time
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
		unread: map[string]health.Unread{},
		tries:  map[string]attempt{},
	}
}

// round is what a batch changes in polling once it is stored.
type round struct {
	addresses []chain.Address
	all       []chain.Address
	to        uint64
	moved     []chain.Address
	now       time.Time
}

// stored takes a round into account that was stored; nil does nothing.
func (p *polling) stored(r *round) {
	if r == nil {
		return
	}

	p.size = len(r.all)
	for _, address := range r.addresses {
		if _, known := p.read[address]; !known {
			p.active[address] = r.now
		}

		p.read[address] = r.to
	}

	for _, address := range r.moved {
		p.active[address] = r.now
	}

	for address, at := range p.active {
		if r.now.Sub(at) > activeFor {
			delete(p.active, address)
		}
	}

	if len(p.read) > 2*len(r.all)+1000 {
		kept := map[chain.Address]uint64{}

		for _, address := range r.all {
			if height, ok := p.read[address]; ok {
				kept[address] = height
			}
		}

		p.read = kept
	}
}

// roundDue reports whether the time between two rounds is over.
func (f *Follower) roundDue() bool {
	_, every := f.partial.ReadingPace(f.polling.size)

	return f.polling.behind || f.polling.last.IsZero() || !f.Now().Before(f.polling.last.Add(every))
}

// pollPart reads the addresses whose turn it is into a batch, up to where the node is. After a fork it reads all
// of them: a transfer that is not found has left the chain.
func (f *Follower) pollPart(ctx context.Context, b *Batch) error {
	now := f.Now()

	since := now.Add(-f.PollFor)
	if b.Rewound {
		since = time.Time{}
	}

	all, err := f.Addresses(ctx, since)
	if err != nil {
		return fmt.Errorf("listing the addresses of %s: %w", f.network.Slug, err)
	}

	chosen := all
	if !b.Rewound {
		chosen = f.chooseAddresses(all, b.ForkedFrom.Height, b.Head.Tip.Height)
	}

	at, err := f.readGroups(ctx, b, chosen)
	if err != nil {
		return err
	}

	if at.Height <= b.ForkedFrom.Height {
		b.Blocks, b.unread = nil, nil // the node that answered has not reached more
		return nil
	}

	if err := f.checkUnmoved(ctx, b, at); err != nil {
		return err
	}

	if n := len(b.Blocks); n == 0 || b.Blocks[n-1].Height < at.Height {
		b.Blocks = append(b.Blocks, chain.Block{Ref: at})
	}

	b.round = &round{addresses: chosen, all: all, to: at.Height, now: now}
	for _, block := range b.Blocks {
		for _, moved := range block.Transfers {
			b.round.moved = append(b.round.moved, moved.To)
		}
	}

	return nil
}

// chooseAddresses returns the addresses of a round: those that would be read too late, then those never read,
// then active ones, then the others; of each kind those that were not read for longest.
func (f *Follower) chooseAddresses(all []chain.Address, base, tip uint64) []chain.Address {
	perReading, _ := f.partial.ReadingPace(len(all))
	p := f.polling

	rank := func(address chain.Address) int {
		height, known := p.read[address]
		_, active := p.active[address]

		if !known {
			height = base
		}

		switch {
		case height+lookBack/2 <= tip:
			return 0
		case !known:
			return 1
		case active:
			return 2
		}

		return 3
	}

	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b chain.Address) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(p.read[a], p.read[b]))
	})

	// A quarter of each round is for those at rest, however many are active.
	rest := slices.IndexFunc(sorted, func(a chain.Address) bool { return rank(a) == 3 })

	due := slices.IndexFunc(sorted, func(a chain.Address) bool { return rank(a) > 0 })
	if due < 0 {
		due = len(sorted)
	}

	perReading = max(perReading, due)

	if first := perReading * 3 / 4; rest > first && due <= first {
		atRest := sorted[rest:min(len(sorted), rest+perReading-first)]
		return slices.Concat(sorted[:perReading-len(atRest)], atRest)
	}

	return sorted[:min(len(sorted), perReading)]
}

// readGroups reads addresses, those together that were read up to the same height, and returns the block up to
// which all are read.
func (f *Follower) readGroups(
	ctx context.Context,
	b *Batch,
	chosen []chain.Address,
) (at chain.Ref, err error) {
	at = b.Head.Tip
	groups := map[uint64][]chain.Address{}
	base := b.ForkedFrom.Height

	for _, address := range chosen {
		from := base + 1
		if height, known := f.polling.read[address]; known {
			from = min(from, height+1)
		} else {
			from -= min(from-1, lookBack)
		}

		groups[from] = append(groups[from], address)
	}

	byHeight := map[uint64]*chain.Block{}

	for _, from := range slices.Sorted(maps.Keys(groups)) {
		reading, err := f.readGroup(ctx, groups[from], from, base, at.Height)
		if err != nil {
			return chain.Ref{}, fmt.Errorf(
				"reading the transfers of blocks %d to %d of %s: %w", from, at.Height, f.network.Slug, err,
			)
		}

		if reading.At.Height < at.Height {
			at = reading.At
		}

		if b.Rewound && len(reading.Unread) > 0 {
			return chain.Ref{}, fault.New(
				fault.Unavailable,
				"node_unavailable",
				"after a fork of %s, the history of %s cannot be read: %s",
				f.network.Slug,
				reading.Unread[0].Address,
				reading.Unread[0].Why,
			)
		}

		b.unread = append(b.unread, reading.Unread...)

		if err := mergeBlocks(byHeight, reading.Blocks); err != nil {
			return chain.Ref{}, err
		}
	}

	for _, height := range slices.Sorted(maps.Keys(byHeight)) {
		if height <= at.Height {
			b.Blocks = append(b.Blocks, *byHeight[height])
		}
	}

	return at, nil
}

// readGroup reads addresses from a height on. Where the node no longer has the blocks below base, they are left
// out: they were read before.
func (f *Follower) readGroup(
	ctx context.Context,
	addresses []chain.Address,
	from, base, to uint64,
) (chain.AddressReading, error) {
	reading, err := f.partial.ReadTransfers(ctx, addresses, from, to)
	if from <= base && errors.Is(err, fault.Stopped) && fault.Code(err) == prunedCode {
		return f.partial.ReadTransfers(ctx, addresses, base+1, to)
	}

	return reading, err
}

// mergeBlocks adds blocks to those of other addresses at the same heights.
func mergeBlocks(byHeight map[uint64]*chain.Block, blocks []chain.Block) error {
	for _, block := range blocks {
		known := byHeight[block.Height]
		if known == nil {
			byHeight[block.Height] = &block
			continue
		}

		if known.Hash != block.Hash {
			return fault.New(
				fault.Unavailable, unlinkedCode, "block %d changed while it was read", block.Height,
			)
		}

		for _, moved := range block.Transfers {
			if !slices.Contains(known.Transfers, moved) {
				known.Transfers = append(known.Transfers, moved)
			}
		}

		for _, spent := range block.Spent {
			if !slices.Contains(known.Spent, spent) {
				known.Spent = append(known.Spent, spent)
			}
		}
	}

	return nil
}

// checkUnmoved returns fault.Unavailable when the block up to which was read has left the chain meanwhile. A
// reading that found nothing need not be checked.
func (f *Follower) checkUnmoved(ctx context.Context, b *Batch, at chain.Ref) error {
	if len(b.Blocks) == 0 && !b.Rewound {
		return nil
	}

	ref, err := f.Driver.RefAt(ctx, at.Height)
	if err != nil {
		return fmt.Errorf("asking %s for block %d: %w", f.network.Slug, at.Height, err)
	}

	if ref.Hash != at.Hash {
		return fault.New(
			fault.Unavailable, unlinkedCode, "block %d of %s changed while the transfers were read",
			at.Height, f.network.Slug,
		)
	}

	return nil
}
