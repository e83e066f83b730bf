package solana

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// slotCache maps recent heights to slots. Nodes serve blocks by slot, and a slot may have no block. It
// only saves requests: every entry is checked against the block.
type slotCache struct {
	mu    sync.Mutex
	slots map[uint64]uint64 // by height
}

const maxCachedSlots = 8192

func newSlotCache() *slotCache { return &slotCache{slots: map[uint64]uint64{}} }

func (c *slotCache) put(height, slot uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if len(c.slots) >= maxCachedSlots {
		clear(c.slots)
	}

	c.slots[height] = slot
}

func (c *slotCache) get(height uint64) (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	slot, ok := c.slots[height]

	return slot, ok
}

// getAll returns the slots of n heights from a height on; ok is false when one is missing.
func (c *slotCache) getAll(height uint64, n int) (slots []uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for i := range uint64(n) {
		slot, known := c.slots[height+i]
		if !known {
			return nil, false
		}

		slots = append(slots, slot)
	}

	return slots, true
}

func (c *slotCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()

	clear(c.slots)
}

// headerAt returns the block at a height, without its transactions. Errors:
//   - failover.ErrLagging: the height is above the node's tip;
//   - failover.ErrPruned: the height is below the node's ledger.
func (d *driver) headerAt(ctx context.Context, e *endpoint, height uint64) (blockHeader, error) {
	if slot, ok := d.slots.get(height); ok {
		h, err := e.header(ctx, slot)
		if err == nil && h.Height == height {
			return h, nil
		}

		if err != nil && !isNoBlock(err) {
			return blockHeader{}, e.blockError(ctx, height, err)
		}

		d.slots.clear() // another branch, or another node
	}

	slots, err := d.slotsOf(ctx, e, height, 1)
	if err != nil {
		return blockHeader{}, err
	}

	h, err := e.header(ctx, slots[0])
	if err != nil {
		return blockHeader{}, e.blockError(ctx, height, err)
	}

	if h.Height != height {
		return blockHeader{}, e.slotMismatch(h, height)
	}

	d.slots.put(height, h.slot)

	return h, nil
}

// slotsOf returns the slots of n heights from a height on, none of them above the tip. The caller
// checks the heights of the blocks, since a list with a gap looks like a complete one.
func (d *driver) slotsOf(ctx context.Context, e *endpoint, height uint64, n int) ([]uint64, error) {
	last := height + uint64(n) - 1
	if last > e.KnownTip() {
		if err := e.refreshTip(ctx); err != nil {
			return nil, err
		}

		if last > e.KnownTip() {
			return nil, failover.ErrLagging
		}
	}

	start, err := d.blockAtOrBelow(ctx, e, height)
	if err != nil {
		return nil, err
	}

	count := int(last-start.Height) + 1

	var slots []uint64
	if err := e.call(ctx, &slots, "getBlocksWithLimit", start.slot, count, confirmed{}); err != nil {
		return nil, e.blockError(ctx, height, err)
	}

	if len(slots) != count || slots[0] != start.slot {
		return nil, e.Garbled(
			"its list of %d slots from %d on has %d, though its tip is higher",
			count, start.slot, len(slots),
		)
	}

	for i := 1; i < len(slots); i++ {
		if slots[i] <= slots[i-1] {
			return nil, e.Garbled("its list of slots from %d on is not in order", start.slot)
		}
	}

	return slots[count-n:], nil
}

// maxListedSlots is the longest list of slots that is requested. Source: Agave,
// MAX_GET_CONFIRMED_BLOCKS_RANGE is 500,000.
const maxListedSlots = 400_000

// blockAtOrBelow returns a block at or below a height, at most maxListedSlots blocks below it.
func (d *driver) blockAtOrBelow(ctx context.Context, e *endpoint, height uint64) (blockHeader, error) {
	if h, ok, err := d.cachedBlockAtOrBelow(ctx, e, height); ok || err != nil {
		return h, err
	}

	tip, err := e.latestBlock(ctx, "confirmed", 0)
	if err != nil {
		return blockHeader{}, err
	}

	if tip.Height <= height {
		return tip, nil
	}

	return e.searchBelow(ctx, tip, height)
}

// cachedBlockAtOrBelow returns a block at most 16 blocks below a height whose slot is cached. ok is
// false when there is none.
func (d *driver) cachedBlockAtOrBelow(
	ctx context.Context,
	e *endpoint,
	height uint64,
) (h blockHeader, ok bool, err error) {
	for back := range min(height, 16) + 1 {
		slot, cached := d.slots.get(height - back)
		if !cached {
			continue
		}

		h, err := e.header(ctx, slot)
		if err == nil && h.Height <= height {
			return h, true, nil
		}

		if err != nil && !isNoBlock(err) {
			return blockHeader{}, false, e.blockError(ctx, height, err)
		}

		d.slots.clear()

		break
	}

	return blockHeader{}, false, nil
}

// searchBelow searches back from the tip for a block at or below a height.
//
// Between two blocks there are at least as many slots as heights, so going back by the difference in
// heights hardly overshoots. A sixteenth more allows for slots without a block, and so does extra, which
// doubles over a stretch without any block.
func (e *endpoint) searchBelow(ctx context.Context, tip blockHeader, height uint64) (blockHeader, error) {
	slot, extra := tip.slot, uint64(1)

	for h := tip; ; {
		if slot == 0 {
			return blockHeader{}, failover.ErrPruned
		}

		distance := h.Height - height
		slot -= min(slot, distance+distance/16+extra)

		next, err := e.firstBlockSlot(ctx, slot, tip.slot, height)
		if err != nil {
			return blockHeader{}, err
		}

		if next >= h.slot {
			if err := e.checkAvailable(ctx, slot); err != nil {
				return blockHeader{}, err
			}

			extra *= 2

			continue
		}

		if h, err = e.header(ctx, next); err != nil {
			return blockHeader{}, e.blockError(ctx, height, err)
		}

		if h.Height > height {
			continue
		}

		if height-h.Height > maxListedSlots {
			return blockHeader{}, e.Garbled(
				"block %d is in slot %d, too far from block %d for its tip",
				h.Height, h.slot, height,
			)
		}

		return h, nil
	}
}

// firstBlockSlot returns the first slot with a block from a slot on.
func (e *endpoint) firstBlockSlot(ctx context.Context, slot, tipSlot, height uint64) (uint64, error) {
	var first []uint64
	if err := e.call(ctx, &first, "getBlocksWithLimit", slot, 1, confirmed{}); err != nil {
		return 0, e.blockError(ctx, height, err)
	}

	if len(first) != 1 || first[0] < slot {
		return 0, e.Garbled("it has no block from slot %d on, though its tip is %d", slot, tipSlot)
	}

	return first[0], nil
}

// oldestSlot returns the first slot from which on the node has blocks, transactions and signatures. Source:
// solana.com/docs/rpc/http/getfirstavailableblock and minimumledgerslot. The latter is of the node's own ledger, the
// former also of a long-term storage, which need not have signatures.
func (e *endpoint) oldestSlot(ctx context.Context) (uint64, error) {
	var first, own uint64

	// What a node has forgotten does not come back.
	if oldest := e.oldest.Load(); oldest > 1 {
		return oldest, nil
	}

	if err := e.call(ctx, &first, "getFirstAvailableBlock"); err != nil {
		return 0, err
	}

	if err := e.call(ctx, &own, "minimumLedgerSlot"); err != nil {
		if _, refused := errors.AsType[*failover.Refusal](err); refused {
			return first, nil // not every provider serves it
		}

		return 0, err
	}

	e.oldest.Store(max(first, own))

	return max(first, own), nil
}

// isNoBlock reports whether a node refused because the slot has no block, or none yet. Of a slot that is not final
// nodes do not say which: a block that left the chain is not available. Source: Agave, rpc/src/rpc.rs, get_block.
func isNoBlock(err error) bool {
	return failover.RefusedWith(
		err,
		codeBlockNotYet,
		codeBlockStatusNotYet,
		codeSlotSkipped,
		codeLongTermSkipped,
	)
}

// checkAvailable returns failover.ErrPruned when a slot is below the node's ledger.
func (e *endpoint) checkAvailable(ctx context.Context, slot uint64) error {
	var oldest uint64
	if err := e.call(ctx, &oldest, "getFirstAvailableBlock"); err != nil {
		return err
	}

	if slot < oldest {
		return failover.ErrPruned
	}

	return nil
}

// blockError translates a node's refusal to serve a block of its ledger at a height. Errors:
//   - failover.ErrPruned: the block is older than the ledger;
//   - failover.ErrLagging: the height is above the tip;
//   - a *failover.Failure: the node contradicts itself.
func (e *endpoint) blockError(ctx context.Context, height uint64, err error) error {
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

func (e *endpoint) slotMismatch(h blockHeader, height uint64) error {
	return e.Garbled(
		"its list of slots leaves out blocks: slot %d has block %d, not %d",
		h.slot, h.Height, height,
	)
}

// refreshTip updates the node's known tip to its newest confirmed height.
func (e *endpoint) refreshTip(ctx context.Context) error {
	h, err := e.latestBlock(ctx, "confirmed", 0)
	if err != nil {
		return err
	}

	e.SawTip(h.Height)

	return nil
}

// latestBlock returns the newest block of a commitment, in a slot of at least minSlot. Right after a slot the node
// may not serve its block yet; then it returns one of the three blocks before.
func (e *endpoint) latestBlock(ctx context.Context, commitment string, minSlot uint64) (blockHeader, error) {
	options := map[string]any{"commitment": commitment}
	if minSlot > 0 {
		options["minContextSlot"] = minSlot
	}

	var slot uint64
	if err := e.call(ctx, &slot, "getSlot", options); err != nil {
		return blockHeader{}, err
	}

	h, err := e.header(ctx, slot)
	if !isNoBlock(err) {
		return h, err
	}

	slots, err := e.slotsUpTo(ctx, slot)
	if err != nil {
		return blockHeader{}, err
	}

	var last error

	for i := len(slots) - 1; i >= max(0, len(slots)-4); i-- {
		h, err := e.header(ctx, slots[i])
		if err == nil {
			return h, nil
		}

		if !isNoBlock(err) {
			return blockHeader{}, err
		}

		last = err
	}

	if refusal, ok := errors.AsType[*failover.Refusal](last); ok {
		return blockHeader{}, e.Garbled("its newest blocks are not there yet: %s", refusal.Message)
	}

	return blockHeader{}, last
}

// slotsUpTo returns the last slots with a block up to a slot, at least one. An outage of the network
// can leave a long stretch of slots without any.
func (e *endpoint) slotsUpTo(ctx context.Context, slot uint64) ([]uint64, error) {
	for _, width := range []uint64{64, 4096, maxListedSlots} {
		var slots []uint64

		from := slot - min(slot, width)
		if err := e.call(ctx, &slots, "getBlocks", from, slot, confirmed{}); err != nil {
			return nil, err
		}

		if len(slots) > 0 {
			return slots, nil
		}
	}

	return nil, e.Garbled("it has no block at or below slot %d", slot)
}
