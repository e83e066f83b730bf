package solana

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Nodes are asked for blocks by slot, and slots may have no block: here heights become slots.

// slotMemory remembers the slots of recent heights. It only saves requests: whatever it says is
// compared with the block.
type slotMemory struct {
	mu   sync.Mutex
	slot map[uint64]uint64
}

const rememberedSlots = 8192

func newSlotMemory() *slotMemory { return &slotMemory{slot: map[uint64]uint64{}} }

func (m *slotMemory) put(height, slot uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if len(m.slot) >= rememberedSlots {
		clear(m.slot)
	}

	m.slot[height] = slot
}

func (m *slotMemory) get(height uint64) (uint64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()

	slot, ok := m.slot[height]

	return slot, ok
}

func (m *slotMemory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()

	clear(m.slot)
}

// maxListed is the longest list of slots that a node is asked for. Source: Agave,
// MAX_GET_CONFIRMED_BLOCKS_RANGE is 500,000.
const maxListed = 400_000

// headerAt returns the block at a height without its transactions. A height above the node's tip is
// failover.ErrLagging, one below its ledger failover.ErrPruned.
func (d *Driver) headerAt(ctx context.Context, e *endpoint, height uint64) (header, error) {
	if slot, ok := d.slots.get(height); ok {
		h, err := e.header(ctx, slot)
		if err == nil && h.Height == height {
			return h, nil
		}

		if err != nil && !failover.RefusedWith(err, codeSlotSkipped, codeLongTermSkipped) {
			return header{}, e.absent(ctx, height, err)
		}

		d.slots.forget() // another branch, or another node
	}

	slots, err := d.slotsOf(ctx, e, height, 1)
	if err != nil {
		return header{}, err
	}

	h, err := e.header(ctx, slots[0])
	if err != nil {
		return header{}, e.absent(ctx, height, err)
	}

	if h.Height != height {
		return header{}, e.Garbled(
			"its list of slots leaves out blocks: slot %d has block %d, not %d",
			slots[0], h.Height, height,
		)
	}

	d.slots.put(height, h.slot)

	return h, nil
}

// slotsOf returns the slots of n heights from one on; all of them are at or below the tip. The
// caller compares the blocks' heights with what it asked for, as a list with a gap cannot be told
// from one without.
func (d *Driver) slotsOf(ctx context.Context, e *endpoint, height uint64, n int) ([]uint64, error) {
	last := height + uint64(n) - 1
	if last > e.KnownTip() {
		if err := e.refreshTip(ctx); err != nil {
			return nil, err
		}

		if last > e.KnownTip() {
			return nil, failover.ErrLagging
		}
	}

	below, err := d.anchor(ctx, e, height)
	if err != nil {
		return nil, err
	}

	count := int(last-below.Height) + 1

	var slots []uint64
	if err := e.call(ctx, &slots, "getBlocksWithLimit", below.slot, count, confirmed{}); err != nil {
		return nil, e.absent(ctx, height, err)
	}

	if len(slots) != count || slots[0] != below.slot {
		return nil, e.Garbled(
			"its list of %d slots from %d on has %d, though its tip is higher",
			count, below.slot, len(slots),
		)
	}

	for i := 1; i < len(slots); i++ {
		if slots[i] <= slots[i-1] {
			return nil, e.Garbled("its list of slots from %d on is not in order", below.slot)
		}
	}

	return slots[count-n:], nil
}

// anchor returns a block at or below a height, near enough to list the slots from there.
func (d *Driver) anchor(ctx context.Context, e *endpoint, height uint64) (header, error) {
	for back := range min(height, 16) + 1 {
		slot, ok := d.slots.get(height - back)
		if !ok {
			continue
		}

		h, err := e.header(ctx, slot)
		if err == nil && h.Height <= height {
			return h, nil
		}

		if err != nil && !failover.RefusedWith(err, codeSlotSkipped, codeLongTermSkipped) {
			return header{}, e.absent(ctx, height, err)
		}

		d.slots.forget()

		break
	}

	tip, err := e.newest(ctx, "confirmed")
	if err != nil {
		return header{}, err
	}

	if tip.Height <= height {
		return tip, nil
	}
	// Between two blocks lie at least as many slots as heights. Going back as many slots as heights
	// are too many never goes too far by much; the share on top makes up for the slots without a
	// block, and doubles over a stretch that has none at all.
	slot, more := tip.slot, uint64(1)
	for h := tip; ; {
		if slot == 0 {
			return header{}, failover.ErrPruned
		}

		tooHigh := h.Height - height
		slot -= min(slot, tooHigh+tooHigh/16+more)

		var first []uint64
		if err := e.call(ctx, &first, "getBlocksWithLimit", slot, 1, confirmed{}); err != nil {
			return header{}, e.absent(ctx, height, err)
		}

		if len(first) != 1 || first[0] < slot {
			return header{}, e.Garbled(
				"it has no block from slot %d on, though its tip is %d",
				slot, tip.slot,
			)
		}

		if first[0] >= h.slot {
			var oldest uint64
			if err := e.call(ctx, &oldest, "getFirstAvailableBlock"); err != nil {
				return header{}, err
			}

			if slot < oldest {
				return header{}, failover.ErrPruned
			}

			more *= 2

			continue
		}

		if h, err = e.header(ctx, first[0]); err != nil {
			return header{}, e.absent(ctx, height, err)
		}

		if h.Height > height {
			continue
		}

		if height-h.Height > maxListed {
			return header{}, e.Garbled(
				"block %d is in slot %d, too far from block %d for its tip",
				h.Height, h.slot, height,
			)
		}

		return h, nil
	}
}

// absent says why the node does not have a block at a height that it was asked for.
func (e *endpoint) absent(ctx context.Context, height uint64, err error) error {
	switch {
	case failover.RefusedWith(err, codeBlockCleanedUp):
		return failover.ErrPruned
	case failover.RefusedWith(err, codeBlockNotYet, codeBlockStatusNotYet):
		if err := e.refreshTip(ctx); err != nil {
			return err
		}

		if height > e.KnownTip() {
			return failover.ErrLagging
		}

		return e.Garbled("block %d is at or below its tip and not there yet", height)
	case failover.RefusedWith(err, codeSlotSkipped, codeLongTermSkipped):
		return e.Garbled("block %d was in its list of slots and is not there", height)
	}

	return err
}

// refreshTip asks for the newest confirmed height.
func (e *endpoint) refreshTip(ctx context.Context) error {
	h, err := e.newest(ctx, "confirmed")
	if err != nil {
		return err
	}

	e.SawTip(h.Height)

	return nil
}

// newest returns the newest block of a commitment. Right after a slot the node may not have its
// block at hand yet, so one of the blocks before is taken then.
func (e *endpoint) newest(ctx context.Context, commitment string) (header, error) {
	var slot uint64
	if err := e.call(ctx, &slot, "getSlot", map[string]any{"commitment": commitment}); err != nil {
		return header{}, err
	}

	var slots []uint64
	// a network that stood still leaves a long stretch without blocks
	for _, width := range []uint64{64, 4096, maxListed} {
		from := slot - min(slot, width)
		if err := e.call(ctx, &slots, "getBlocks", from, slot, confirmed{}); err != nil {
			return header{}, err
		}

		if len(slots) > 0 {
			break
		}
	}

	if len(slots) == 0 {
		return header{}, e.Garbled("it has no block at or below slot %d", slot)
	}

	var last error

	for i := len(slots) - 1; i >= max(0, len(slots)-4); i-- {
		h, err := e.header(ctx, slots[i])
		if err == nil {
			return h, nil
		}

		if !failover.RefusedWith(err, codeBlockNotYet, codeBlockStatusNotYet, codeSlotSkipped) {
			return header{}, err
		}

		last = err
	}

	if r, ok := errors.AsType[*failover.Refusal](last); ok {
		return header{}, e.Garbled("its newest blocks are not there yet: %s", r.Message)
	}

	return header{}, last
}
