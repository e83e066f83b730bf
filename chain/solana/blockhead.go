package solana

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// blockTail is what a reader of blocks remembers between two readings, so that no block is called for twice.
type blockTail struct {
	newest atomic.Pointer[blockHeader] // that Head returned, with its transactions until Blocks used them
	base   atomic.Pointer[blockHeader] // from which the last Head went on, until RefAt used it

	mu      sync.Mutex
	headers map[uint64]blockHeader // of recent blocks without transactions, by slot
}

// maxTail is the number of headers that are remembered. The final block is some 32 behind the tip.
const maxTail = 512

// put remembers a block without its transactions.
func (b *blockTail) put(h blockHeader) {
	h.Transactions = nil

	b.mu.Lock()
	defer b.mu.Unlock()

	if b.headers == nil || len(b.headers) >= maxTail {
		b.headers = map[uint64]blockHeader{}
	}

	b.headers[h.slot] = h
}

func (b *blockTail) header(slot uint64) (blockHeader, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	h, ok := b.headers[slot]

	return h, ok
}

// takeTransactions returns the block of a slot with its transactions if Head has read it.
func (b *blockTail) takeTransactions(slot uint64) (blockHeader, bool) {
	h := b.newest.Load()
	if h == nil || h.slot != slot || h.Transactions == nil {
		return blockHeader{}, false
	}

	without := *h
	without.Transactions = nil

	return *h, b.newest.CompareAndSwap(h, &without)
}

// errMoved is a chain that does not go on from the newest block, or a node that does not say.
var errMoved = errors.New("the chain does not go on from the newest block")

// Head returns what Head of a driver without blocks does. From one call to the next it lists the slots since, and reads
// the tip's block, which Blocks does not call for again; the final slot is one more call where the node offers an
// earlier commitment. Where the chain does not go on it starts anew.
func (d *blockDriver) Head(ctx context.Context) (chain.Head, error) {
	if known := d.tail.newest.Load(); known != nil {
		var (
			head  chain.Head
			moved bool
		)

		err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
			head, err = d.nextHead(ctx, e, *known)
			if moved = errors.Is(err, errMoved); moved {
				return nil
			}

			return err
		})
		if err == nil && !moved {
			return head, nil
		}

		if ctx.Err() != nil {
			return chain.Head{}, err
		}

		d.tail.newest.Store(nil) // the chain has forked, or the node contradicts itself
	}

	head, err := d.driver.Head(ctx)
	if err != nil {
		return chain.Head{}, err
	}

	d.tail.base.Store(nil)
	d.tail.newest.Store(d.head.Load())
	d.tail.put(*d.head.Load())

	return head, nil
}

// RefAt returns the canonical block at a height. A height above the tip is fault.NotFound. The block from which
// Head went on needs no call: Blocks reads its child, which names it.
func (d *blockDriver) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	base := d.tail.base.Load()
	if base != nil && base.Height == height && d.tail.base.CompareAndSwap(base, nil) {
		return base.ref(), nil
	}

	return d.driver.RefAt(ctx, height)
}

// nextHead returns the head at one node, from the newest known block on. It reads the tip with its transactions.
func (d *blockDriver) nextHead(ctx context.Context, e *endpoint, known blockHeader) (chain.Head, error) {
	// The final slot is read first, so that it is never newer than the tip.
	var finalSlot uint64

	if !e.finalOnly.Load() {
		if err := e.call(ctx, &finalSlot, "getSlot", map[string]any{"commitment": final}); err != nil {
			return chain.Head{}, err
		}
	}

	tip, slots, err := d.nextTip(ctx, e, known)
	if err != nil {
		return chain.Head{}, err
	}

	last := tip

	switch {
	case finalSlot > tip.slot:
		return chain.Head{}, errMoved
	case !e.finalOnly.Load():
		if last, err = d.finalHeader(ctx, e, finalSlot); err != nil {
			return chain.Head{}, err
		}
	}

	for i, slot := range slots {
		d.slots.put(known.Height+uint64(i), slot)
	}

	d.setHead(e, known, tip)

	return chain.Head{Tip: tip.ref(), Safe: tip.ref(), Final: last.ref()}, nil
}

// nextTip returns the tip, with its transactions where it is not the known block, and the slots of the blocks from
// the known one to it.
func (d *blockDriver) nextTip(
	ctx context.Context,
	e *endpoint,
	known blockHeader,
) (tip blockHeader, slots []uint64, err error) {
	err = e.call(ctx, &slots, "getBlocks", known.slot, known.slot+maxListedSlots, e.newest())
	if err != nil {
		return blockHeader{}, nil, err
	}

	if len(slots) == 0 || slots[0] != known.slot {
		return blockHeader{}, nil, errMoved
	}

	tip = known

	if last := slots[len(slots)-1]; last != known.slot {
		if tip, err = e.block(ctx, last, "accounts"); isNoBlock(err) {
			return blockHeader{}, nil, errMoved
		} else if err != nil {
			return blockHeader{}, nil, err
		}
	}

	if tip.Height != known.Height+uint64(len(slots))-1 {
		return blockHeader{}, nil, e.slotMismatch(tip, known.Height+uint64(len(slots))-1)
	}

	return tip, slots, nil
}

// setHead remembers the tip.
func (d *blockDriver) setHead(e *endpoint, known, tip blockHeader) {
	if tip.slot != known.slot {
		d.tail.newest.Store(&tip)
	}

	d.tail.base.Store(&known)
	d.tail.put(tip)

	without := tip
	without.Transactions = nil
	d.head.Store(&without)
	d.nodes.Seen.Store(tip.Height)
	e.SawTip(tip.Height)
}

// finalHeader returns the block of a final slot. A slot has one block in every chain that it is in, so that one
// which was read before it was final is the same.
func (d *blockDriver) finalHeader(ctx context.Context, e *endpoint, slot uint64) (blockHeader, error) {
	if h, ok := d.tail.header(slot); ok {
		return h, nil
	}

	h, err := e.header(ctx, slot)
	if err == nil {
		d.tail.put(h)
	}

	return h, err
}

// blocksOf reads the blocks of known slots, or else of slots that the node lists.
func (d *blockDriver) blocksOf(
	ctx context.Context,
	e *endpoint,
	from uint64,
	count int,
) ([]chain.Block, error) {
	if slots, ok := d.slots.getAll(from, count); ok {
		blocks, err := d.readSlots(ctx, e, from, slots)
		if err == nil {
			return blocks, nil
		}

		if errors.Is(err, failover.ErrLagging) || ctx.Err() != nil {
			return nil, err
		}

		d.slots.clear()
		d.tail.newest.Store(nil) // the chain has forked, or the node contradicts itself
	}

	slots, err := d.slotsOf(ctx, e, from, count)
	if err != nil {
		return nil, err
	}

	return d.readSlots(ctx, e, from, slots)
}
