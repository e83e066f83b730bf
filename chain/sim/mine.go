package sim

// Blocks: mining them, executing what is in them, and forks.

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

type block struct {
	ref    chain.Ref
	parent string
	txs    []*inclusion
}

// inclusion is a transaction in a block and what became of it there.
type inclusion struct {
	tx       *transaction
	hash     string
	height   uint64
	reverted bool
	fee      chain.Amount
}

func (c *Chain) tip() uint64 { return uint64(len(c.blocks) - 1) }

// appendBlock executes the transactions that can be executed, in the order in which that works out,
// and returns those that could not be.
func (c *Chain) appendBlock(at time.Time, candidates []*pooled) (left []*pooled) {
	b := &block{ref: chain.Ref{Height: uint64(len(c.blocks)), Time: at}}
	if b.ref.Height > 0 {
		parent := c.blocks[b.ref.Height-1].ref

		b.parent = parent.Hash
		if at.Before(parent.Time) {
			b.ref.Time = parent.Time
		}
	}

	for progress := true; progress; candidates = left {
		progress, left = false, nil

		for _, entry := range candidates {
			done, ok := c.execute(entry, b.ref)
			if !ok {
				left = append(left, entry)
				continue
			}

			progress = true

			b.txs = append(b.txs, done)
			c.included[entry.hash] = done
			c.waiting.remove(entry.hash)

			if rival := c.waiting.bySlot[slot{entry.tx.from, entry.tx.nonce}]; rival != nil {
				c.waiting.remove(rival.hash)
			}
		}
	}

	h := sha256.New()
	h.Write([]byte(b.parent))

	for _, n := range []uint64{b.ref.Height, uint64(b.ref.Time.UnixMilli()), c.config.Seed, c.forks} {
		h.Write(binary.BigEndian.AppendUint64(nil, n))
	}

	h.Write(c.networkID[:])

	for _, done := range b.txs {
		h.Write([]byte(done.hash))
	}

	b.ref.Hash = hex.EncodeToString(h.Sum(nil))

	c.blocks = append(c.blocks, b)
	if tip := c.tip(); tip > c.config.FinalDepth {
		c.final = max(c.final, tip-c.config.FinalDepth)
	}

	return left
}

// execute applies one transaction to the state after the block, or reports that it cannot be in this block.
func (c *Chain) execute(entry *pooled, in chain.Ref) (*inclusion, bool) {
	tx, height := entry.tx, in.Height
	from := tx.from.address()

	price, pays := tx.price(c.baseFee)
	if !pays || tx.nonce != c.nonces.at(from, height) || tx.expired(height, in.Time) ||
		!c.affordable(tx, height) {
		return nil, false
	}

	done := &inclusion{tx: tx, hash: entry.hash, height: height, fee: chain.Units(price).Mul(tx.gas())}
	c.nonces.set(from, height, tx.nonce+1)
	c.debit(chain.Holding{Address: from, AssetID: c.native.ID}, height, done.fee)
	done.reverted = c.failing[entry.hash] || !c.move(tx, height)

	return done, true
}

// move applies the movements, all or none.
func (c *Chain) move(tx *transaction, height uint64) bool {
	from := tx.from.address()
	next := map[chain.Holding]chain.Amount{}
	read := func(h chain.Holding) chain.Amount {
		if v, ok := next[h]; ok {
			return v
		}

		return c.balances.at(h, height)
	}

	for _, m := range tx.moves {
		source := chain.Holding{Address: from, AssetID: c.assetID(m)}

		target := chain.Holding{Address: m.to.address(), AssetID: source.AssetID}
		if c.frozen[target] || read(source).Less(m.amount) {
			return false
		}

		next[source] = read(source).Sub(m.amount)

		sum, ok := read(target).AddOK(m.amount)
		if !ok {
			return false
		}

		next[target] = sum
	}

	for h, v := range next {
		c.balances.set(h, height, v)
	}

	return true
}

func (c *Chain) debit(h chain.Holding, height uint64, amount chain.Amount) {
	c.balances.set(h, height, c.balances.at(h, height).Sub(amount))
}

// Mine makes n blocks from the pool, timed now, and returns the new tip. What the pool holds at too low a
// price, beyond a missing nonce or without funds stays there; what ran out is thrown away.
func (c *Chain) Mine(n int) chain.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()

	for range n {
		c.mine(c.now())
	}

	return c.blocks[c.tip()].ref
}

// MineEmpty makes n blocks that take nothing from the pool, and returns the new tip.
func (c *Chain) MineEmpty(n int) chain.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()

	for range n {
		c.appendBlock(c.now(), nil)
		c.evict()
	}

	return c.blocks[c.tip()].ref
}

func (c *Chain) mine(at time.Time) {
	c.appendBlock(at, c.waiting.sorted(c.baseFee))
	c.evict()
}

// evict drops from the pool what can no longer be included on this branch.
func (c *Chain) evict() {
	tip := c.blocks[c.tip()].ref
	for hash, entry := range c.waiting.byHash {
		used := entry.tx.nonce < c.nonces.at(entry.tx.from.address(), tip.Height)
		if used || entry.tx.expired(tip.Height+1, tip.Time) {
			c.waiting.remove(hash)
		}
	}
}

// Tick mines the blocks that are due at a time, one per Config.BlockTime since the last, and
// returns their number.
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

// Fate says what becomes of a transaction whose block left the chain.
type Fate int

// The fates.
const (
	ReturnToPool Fate = iota // it waits for a block again
	Reinclude                // it is in the first block of the new branch
	Forget                   // the network forgets it
)

// Fork describes a reorganisation.
type Fork struct {
	// Depth is how many blocks leave the chain.
	Depth uint64
	// Length is how many blocks take their place. Defaults to Depth + 1, so that the tip rises.
	Length uint64
	// Fate is what becomes of the transactions in those blocks, Each that of single ones by hash.
	Fate Fate
	Each map[string]Fate
}

// Fork replaces the newest blocks by a new branch and returns its tip. The new branch holds nothing
// but the transactions that are to be included again; what is returned to the pool waits for Mine.
// A fork may go below the final block, which a real network promises never to do.
func (c *Chain) Fork(f Fork) chain.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()

	if f.Depth == 0 || f.Depth > c.tip() {
		panic(fmt.Sprintf("sim: a fork of %d blocks does not fit a chain of height %d", f.Depth, c.tip()))
	}

	if f.Length == 0 {
		f.Length = f.Depth + 1
	}

	var orphans []*inclusion

	for range f.Depth {
		top := c.blocks[c.tip()]
		orphans = append(slices.Clone(top.txs), orphans...)
		c.balances.forget(top.ref.Height)
		c.nonces.forget(top.ref.Height)

		c.blocks = c.blocks[:c.tip()]
		for _, done := range top.txs {
			delete(c.included, done.hash)
		}
	}

	c.final = min(c.final, c.tip())
	c.forks++

	var again []*pooled

	for _, done := range orphans {
		fate, named := f.Each[done.hash]
		if !named {
			fate = f.Fate
		}

		entry := &pooled{tx: done.tx, hash: done.hash}

		switch fate {
		case Reinclude:
			again = append(again, entry)
		case ReturnToPool:
			c.giveBack(entry)
		case Forget:
		}
	}

	for i := range f.Length {
		if i > 0 {
			c.appendBlock(c.now(), nil)
			continue
		}

		for _, entry := range c.appendBlock(c.now(), again) {
			c.giveBack(entry)
		}
	}

	c.evict()

	return c.blocks[c.tip()].ref
}

// giveBack puts a transaction into the pool unless another one holds its nonce there.
func (c *Chain) giveBack(entry *pooled) {
	if c.waiting.bySlot[slot{entry.tx.from, entry.tx.nonce}] == nil {
		_ = c.waiting.add(entry.tx, entry.hash) // cannot be refused: the slot is free
	}
}
