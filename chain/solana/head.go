package solana

// This file reads the newest blocks and single ones, for both ways of reading.

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
	h, err := d.anyHeaderAt(ctx, height)
	if err != nil {
		return chain.Ref{}, err
	}

	return h.ref(), nil
}

// ParentAt implements chain.ParentReader.
func (d *driver) ParentAt(ctx context.Context, height uint64) (string, error) {
	h, err := d.anyHeaderAt(ctx, height)

	return h.Parent, err
}

// anyHeaderAt returns the header at a height of the first node that has it; see RefAt.
func (d *driver) anyHeaderAt(ctx context.Context, height uint64) (h blockHeader, err error) {
	err = d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		h, err = d.headerAt(ctx, e, height)
		return err
	})

	return h, aboveTip(err, height)
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
