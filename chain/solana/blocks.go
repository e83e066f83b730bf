package solana

import (
	"context"
	"errors"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Head returns the newest confirmed block, which is also the safe block, and the newest finalized
// block. A node behind the last seen tip is passed over while another node is ahead. Of several backends behind
// one URL those are asked that are as far as was seen.
func (d *driver) Head(ctx context.Context) (chain.Head, error) {
	var best, bestFinal *blockHeader

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		tip, last, err := d.headOf(ctx, e)
		if err != nil {
			return err
		}

		if best == nil || tip.Height > best.Height {
			best, bestFinal = &tip, &last
		}

		if tip.Height < d.nodes.Seen.Load() {
			return failover.ErrLagging
		}

		return nil
	})

	// All nodes agree that the chain became shorter.
	if errors.Is(err, failover.ErrLagging) && best != nil {
		err = nil
	}

	if err != nil {
		return chain.Head{}, err
	}

	d.nodes.Seen.Store(best.Height)
	d.head.Store(best)

	return chain.Head{Tip: best.ref(), Safe: best.ref(), Final: bestFinal.ref()}, nil
}

// headOf reads one node's newest block and its newest final block.
func (d *driver) headOf(ctx context.Context, e *endpoint) (tip, last blockHeader, err error) {
	// The final block is read first, so that it is never newer than the tip.
	if !e.finalOnly.Load() {
		if last, err = e.latestBlock(ctx, final, 0); err != nil {
			return tip, last, err
		}
	}

	seen := uint64(0)
	if head := d.head.Load(); head != nil {
		seen = head.slot
	}

	tip, err = e.latestBlock(ctx, newest{e}, max(seen, last.slot))
	if errors.Is(err, failover.ErrLagging) {
		tip, err = e.latestBlock(ctx, newest{e}, 0)
	}

	if err != nil {
		return tip, last, err
	}

	if e.finalOnly.Load() {
		last = tip
	}

	if last.Height > tip.Height {
		return tip, last, e.Garbled("its final block %d is above its tip %d", last.Height, tip.Height)
	}

	e.SawTip(tip.Height)
	d.slots.put(tip.Height, tip.slot)
	e.lastHead.Store(&nodeHead{
		Head: chain.Head{Tip: tip.ref(), Safe: tip.ref(), Final: last.ref()},
		at:   time.Now(),
	})

	return tip, last, nil
}

// nodeHead is what a node's head was at a time.
type nodeHead struct {
	chain.Head
	at time.Time
}

// headFresh is for how long AgreedHead takes what Head has read of a node: every call counts.
const headFresh = 500 * time.Millisecond

// recentHead returns one node's head, read at most headFresh ago.
func (d *driver) recentHead(ctx context.Context, e *endpoint) (chain.Head, error) {
	if last := e.lastHead.Load(); last != nil && time.Since(last.at) < headFresh {
		return last.Head, nil
	}

	if _, _, err := d.headOf(ctx, e); err != nil {
		return chain.Head{}, err
	}

	return e.lastHead.Load().Head, nil
}

// AgreedHead returns the newest blocks that two nodes have, confirmed and finalized.
func (d *driver) AgreedHead(ctx context.Context) (chain.Head, error) {
	return agree.Head(ctx, d.nodes, agree.HeadReader[*endpoint]{Head: d.recentHead, At: d.refAt})
}

// Nodes returns the state of each configured node.
func (d *driver) Nodes() []chain.NodeState { return d.nodes.States() }

// refAt returns one node's block at a height.
func (d *driver) refAt(ctx context.Context, e *endpoint, height uint64) (chain.Ref, error) {
	h, err := d.headerAt(ctx, e, height)
	if err != nil {
		return chain.Ref{}, err
	}

	return h.ref(), nil
}

// RefAt returns the canonical block at a height. A height above the tip is fault.NotFound.
func (d *driver) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	var ref chain.Ref

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		h, err := d.headerAt(ctx, e, height)
		if err == nil {
			ref = h.ref()
		}

		return err
	})

	return ref, aboveTip(err, height)
}

// Blocks returns the blocks of a range of heights, at most Config.MaxBlocks of them.
func (d *blockDriver) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if to < from {
		return nil, emptyRange(from, to)
	}

	var blocks []chain.Block

	count := int(min(to-from, uint64(d.config.MaxBlocks)-1)) + 1

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		blocks, err = d.blocksOf(ctx, e, from, count)
		return err
	})
	if err != nil {
		return nil, aboveTip(err, to)
	}

	return blocks, nil
}

// blocksOf reads the blocks of a range from one node. What was remembered of slots may be of another branch.
func (d *blockDriver) blocksOf(
	ctx context.Context,
	e *endpoint,
	from uint64,
	count int,
) ([]chain.Block, error) {
	slots, remembered, err := d.slotsOf(ctx, e, from, count)
	if err == nil {
		var blocks []chain.Block
		if blocks, err = d.readSlots(ctx, e, from, slots); err == nil {
			return blocks, nil
		}
	}

	if !remembered || errors.Is(err, failover.ErrLagging) || ctx.Err() != nil {
		return nil, err
	}

	d.slots.clear()

	if slots, _, err = d.slotsOf(ctx, e, from, count); err != nil {
		return nil, err
	}

	return d.readSlots(ctx, e, from, slots)
}

// readSlots reads the blocks of slots, whose heights follow from, and checks that each is the child of the one
// before.
func (d *blockDriver) readSlots(
	ctx context.Context,
	e *endpoint,
	from uint64,
	slots []uint64,
) ([]chain.Block, error) {
	count := len(slots)
	headers := make([]blockHeader, count)
	blocks := make([]chain.Block, count)

	err := e.forEach(ctx, count, func(ctx context.Context, i int) error {
		h, err := e.block(ctx, slots[i], "accounts")
		if err != nil {
			return e.blockError(ctx, from+uint64(i), err)
		}

		if h.Height != from+uint64(i) {
			return e.slotMismatch(h, from+uint64(i))
		}

		blocks[i] = chain.Block{Ref: h.ref(), Parent: h.Parent}
		if err := d.readTransactions(ctx, e, h, &blocks[i]); err != nil {
			return err
		}

		h.Transactions = nil // megabytes that are no longer needed
		headers[i] = h

		return nil
	})
	if err != nil {
		return nil, err
	}

	for i := 1; i < count; i++ {
		if headers[i].Parent != headers[i-1].Hash || headers[i].ParentSlot != headers[i-1].slot {
			return nil, e.Garbled(
				"block %d is not the child of the one before it; the chain moved while it was read",
				headers[i].Height,
			)
		}
	}

	for _, h := range headers {
		d.slots.put(h.Height, h.slot)
	}

	return blocks, nil
}

// readTransactions adds the transfers and signers of a block's transactions to it. A transaction that the node
// cannot show is listed as unread, and does not hold up the others.
func (d *driver) readTransactions(
	ctx context.Context,
	e *endpoint,
	h blockHeader,
	block *chain.Block,
) error {
	if h.Transactions == nil {
		return e.Garbled("it sent block %d without its transactions", h.Height)
	}

	seen := make(map[string]bool, len(h.Transactions))

	for _, encoded := range h.Transactions {
		tx, err := e.executedOf(encoded)
		if err == nil {
			err = d.checkOpened(ctx, e, tx)
		}

		unread, isUnread := unreadTx(err)
		if err != nil && !isUnread {
			return err
		}

		if seen[tx.hash] {
			return e.Garbled("its block %d holds transaction %s twice", h.Height, tx.hash)
		}

		seen[tx.hash] = true
		block.Spent = append(block.Spent, tx.spends()...)

		if isUnread {
			unread.Height = h.Height
			block.Unread = append(block.Unread, unread)

			continue
		}

		transfers, err := d.transfers(tx)
		if err != nil {
			return err
		}

		block.Transfers = append(block.Transfers, transfers...)
	}

	return nil
}

// blockHeader is a block; its transactions are read only with their accounts.
type blockHeader struct {
	slot         uint64
	Hash         string    `json:"blockhash"`
	Parent       string    `json:"previousBlockhash"`
	ParentSlot   uint64    `json:"parentSlot"`
	MaybeHeight  *uint64   `json:"blockHeight"`
	MaybeTime    *int64    `json:"blockTime"` // Unix seconds
	Height       uint64    `json:"-"`
	Transactions []blockTx `json:"transactions"`
}

func (h blockHeader) ref() chain.Ref {
	return chain.Ref{Height: h.Height, Hash: h.Hash, Time: h.time()}
}

func (h blockHeader) time() time.Time { return time.Unix(*h.MaybeTime, 0).UTC() }

// header reads the block of a slot without its transactions.
func (e *endpoint) header(ctx context.Context, slot uint64) (blockHeader, error) {
	return e.block(ctx, slot, "none")
}

// block reads the block of a slot. details is the transactionDetails parameter of getBlock.
func (e *endpoint) block(ctx context.Context, slot uint64, details string) (blockHeader, error) {
	var h *blockHeader

	err := e.callVersioned(ctx, &h, "getBlock", slot, map[string]any{
		"commitment":         newest{e},
		"encoding":           "json",
		"transactionDetails": details,
		"rewards":            false,
	})
	if err != nil {
		return blockHeader{}, err
	}

	if h == nil {
		return blockHeader{}, e.Garbled("it has no block for slot %d and does not say why", slot)
	}

	timed := h.MaybeHeight != nil && h.MaybeTime != nil && *h.MaybeTime > 0
	linked := isHash(h.Hash) && isHash(h.Parent) && (h.ParentSlot < slot || slot == 0)

	if !timed || !linked {
		return blockHeader{}, e.Garbled("its block of slot %d has no height, time, hash or parent", slot)
	}

	h.slot, h.Height = slot, *h.MaybeHeight

	return *h, nil
}

func isHash(s string) bool {
	_, err := solanago.PublicKeyFromBase58(s)
	return err == nil
}

// aboveTip translates failover.ErrLagging into fault.NotFound for a height that no node has reached.
func aboveTip(err error, height uint64) error {
	if errors.Is(err, failover.ErrLagging) {
		return fault.Wrap(err, fault.NotFound, "block_unknown", "block %d is above the tip", height)
	}

	return err
}

func emptyRange(from, to uint64) error {
	return fault.New(
		fault.Invalid, "range_invalid", "the range of blocks from %d to %d is empty",
		from, to,
	)
}
