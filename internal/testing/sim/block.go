package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// block is a block of the canonical chain.
type block struct {
	ref      chain.Ref
	parent   string // hash of the block below, hex
	receipts []*receipt
}

// receipt is a transaction in a block with the result of its execution there.
type receipt struct {
	tx       *transaction
	hash     string // hex
	height   uint64
	reverted bool
	outOfGas bool         // it was reverted for want of gas
	fee      chain.Amount // paid by the sender, base units of the native coin
	shown    []shownTransfer
}

func (c *Chain) tip() uint64 { return uint64(len(c.blocks) - 1) }

// Mine adds n blocks from the pool, timed now, and returns the new tip. A transaction with too low a
// price, a nonce gap before it or too little funds stays in the pool; an expired one is removed.
func (c *Chain) Mine(n int) chain.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()

	for range n {
		c.mine(c.now())
	}

	return c.blocks[c.tip()].ref
}

// MineEmpty adds n blocks without transactions and returns the new tip.
func (c *Chain) MineEmpty(n int) chain.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()

	for range n {
		c.appendBlock(c.now(), nil)
		c.evict()
	}

	return c.blocks[c.tip()].ref
}

// Tick mines the blocks that are due at a time, one per Config.BlockTime since the tip, and returns
// their number.
func (c *Chain) Tick(now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()

	mined := 0

	for {
		due := c.blocks[c.tip()].ref.Time.Add(c.config.BlockTime)
		if due.After(now) {
			return mined
		}

		c.mine(due)

		mined++
	}
}

// Run mines a block every Config.BlockTime until the context ends.
func (c *Chain) Run(ctx context.Context) {
	ticker := time.NewTicker(c.config.BlockTime)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.Mine(1)
		}
	}
}

func (c *Chain) mine(at time.Time) {
	c.appendBlock(at, c.pool.sorted(c.baseFee))
	c.evict()
}

// evict removes from the pool the transactions that this branch can no longer include, and those that their senders
// have not paid enough for unpaidFor.
func (c *Chain) evict() {
	tip := c.blocks[c.tip()].ref
	for hash, entry := range c.pool.byHash {
		used := entry.tx.nonce < c.nonces.at(entry.tx.from.address(), tip.Height)
		if used || entry.tx.gas() > c.gasRules(tip.Height+1).most() ||
			entry.tx.expired(tip.Height+1, tip.Time) ||
			c.unpaidLong(entry, tip) {
			c.pool.remove(hash)
		}
	}
}

// appendBlock adds a block with the candidates that can be executed and returns the others.
func (c *Chain) appendBlock(at time.Time, candidates []*poolEntry) (excluded []*poolEntry) {
	if c.config.WholeSeconds {
		at = at.Truncate(time.Second)
	}

	b := &block{ref: chain.Ref{Height: uint64(len(c.blocks)), Time: at}}
	if b.ref.Height > 0 {
		parent := c.blocks[b.ref.Height-1].ref

		b.parent = parent.Hash
		if at.Before(parent.Time) {
			b.ref.Time = parent.Time
		}
	}

	excluded = c.executeAll(b, candidates)
	b.ref.Hash = c.blockHash(b)

	c.blocks = append(c.blocks, b)
	if tip := c.tip(); tip > c.config.FinalDepth {
		c.final = max(c.final, tip-c.config.FinalDepth)
	}

	return excluded
}

// executeAll puts the candidates into a block, in the order in which they can be executed, and
// returns those that cannot.
func (c *Chain) executeAll(b *block, candidates []*poolEntry) (excluded []*poolEntry) {
	for progress := true; progress; candidates = excluded {
		progress, excluded = false, nil

		for _, entry := range candidates {
			included, ok := c.execute(entry, b.ref)
			if !ok {
				excluded = append(excluded, entry)
				continue
			}

			progress = true

			b.receipts = append(b.receipts, included)
			c.receipts[entry.hash] = included
			c.pool.remove(entry.hash)

			// A transaction of the same nonce can never be included beside it.
			if rival := c.pool.byNonce[senderNonce{entry.tx.from, entry.tx.nonce}]; rival != nil {
				c.pool.remove(rival.hash)
			}
		}
	}

	return excluded
}

// blockHash returns the SHA-256, in hex, of the block's parent, height, time, seed, fork number,
// network and transactions.
func (c *Chain) blockHash(b *block) string {
	h := sha256.New()
	h.Write([]byte(b.parent))

	for _, n := range []uint64{b.ref.Height, uint64(b.ref.Time.UnixMilli()), c.config.Seed, c.forks} {
		h.Write(binary.BigEndian.AppendUint64(nil, n))
	}

	h.Write(c.networkID[:])

	for _, included := range b.receipts {
		h.Write([]byte(included.hash))
	}

	return hex.EncodeToString(h.Sum(nil))
}
