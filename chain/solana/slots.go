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

	h, err := e.latestBlock(ctx, newest{e}, 0)
	if err != nil {
		return blockHeader{}, err
	}

	if e.SawTip(h.Height); h.Height < height {
		return blockHeader{}, failover.ErrLagging
	}

	// Between two blocks there are at least as many slots as heights: one that goes back as many slots as heights never
	// goes too far. It stops short by the slots without a block, and goes on from there.
	for h.Height > height {
		above := h
		if h, err = e.newestUpTo(ctx, h.slot-min(h.slot, h.Height-height)); err != nil {
			return blockHeader{}, e.blockError(ctx, height, err)
		}

		if h.Height >= above.Height || h.Height < height {
			return blockHeader{}, e.Garbled(
				"its block of slot %d has height %d, and that of slot %d height %d",
				h.slot, h.Height, above.slot, above.Height,
			)
		}
	}

	d.slots.put(height, h.slot)

	return h, nil
}

// slotsOf returns the slots of n heights from a height on, none of them above the tip. The caller
// checks the heights of the blocks: a list with a gap looks like a complete one, and where the first slot was
// remembered, of this height or of the one below, it may be of another branch.
func (d *driver) slotsOf(
	ctx context.Context,
	e *endpoint,
	height uint64,
	n int,
) (slots []uint64, remembered bool, err error) {
	last := height + uint64(n) - 1
	if last > e.KnownTip() {
		if err := e.refreshTip(ctx); err != nil {
			return nil, false, err
		}

		if last > e.KnownTip() {
			return nil, false, failover.ErrLagging
		}
	}

	below := 0

	start, remembered := d.slots.get(height)
	if !remembered {
		below = 1
		start, remembered = d.slots.get(height - 1)
	}

	if !remembered {
		first, err := d.headerAt(ctx, e, height)
		if err != nil {
			return nil, false, err
		}

		below, start = 0, first.slot
	}

	err = e.call(ctx, &slots, "getBlocksWithLimit", start, below+n, e.newest())
	if err != nil {
		return nil, remembered, e.blockError(ctx, height, err)
	}

	if len(slots) != below+n || slots[0] != start {
		return nil, remembered, e.Garbled(
			"its list of %d slots from %d on has %d, though its tip is higher",
			below+n, start, len(slots),
		)
	}

	for i := 1; i < len(slots); i++ {
		if slots[i] <= slots[i-1] {
			return nil, remembered, e.Garbled("its list of slots from %d on is not in order", start)
		}
	}

	return slots[below:], remembered, nil
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

// refreshTip updates the node's known tip to its newest height.
func (e *endpoint) refreshTip(ctx context.Context) error {
	h, err := e.latestBlock(ctx, newest{e}, 0)
	if err != nil {
		return err
	}

	e.SawTip(h.Height)

	return nil
}

// latestBlock returns the newest block of a commitment, in a slot of at least minSlot. Right after a slot the node
// may not serve its block yet; then it returns one of the three blocks before.
func (e *endpoint) latestBlock(ctx context.Context, commitment any, minSlot uint64) (blockHeader, error) {
	options := map[string]any{"commitment": commitment}
	if minSlot > 0 {
		options["minContextSlot"] = minSlot
	}

	var slot uint64
	if err := e.call(ctx, &slot, "getSlot", options); err != nil {
		return blockHeader{}, err
	}

	return e.newestUpTo(ctx, slot)
}

// newestUpTo returns the newest block up to a slot, or one of the three before while the node does not serve it yet.
func (e *endpoint) newestUpTo(ctx context.Context, slot uint64) (blockHeader, error) {
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

// maxListedSlots is the longest list of slots that is requested. Source: Agave,
// MAX_GET_CONFIRMED_BLOCKS_RANGE is 500,000.
const maxListedSlots = 400_000

// slotsUpTo returns the last slots with a block up to a slot, at least one. An outage of the network
// can leave a long stretch of slots without any.
func (e *endpoint) slotsUpTo(ctx context.Context, slot uint64) ([]uint64, error) {
	for _, width := range []uint64{64, 4096, maxListedSlots} {
		var slots []uint64

		from := slot - min(slot, width)
		if err := e.call(ctx, &slots, "getBlocks", from, slot, e.newest()); err != nil {
			return nil, err
		}

		if len(slots) > 0 {
			return slots, nil
		}
	}

	if err := e.checkAvailable(ctx, slot); err != nil {
		return nil, err
	}

	return nil, e.Garbled("it has no block at or below slot %d", slot)
}
