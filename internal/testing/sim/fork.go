package sim

import (
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
)

// OrphanFate is what happens to a transaction whose block is orphaned.
type OrphanFate int

// The fates.
const (
	ReturnToPool OrphanFate = iota // it returns to the pool
	Reinclude                      // the first block of the new branch includes it
	DropOrphan                     // the network drops it
)

// Fork describes a reorganisation.
type Fork struct {
	// Depth is the number of blocks that are orphaned.
	Depth uint64

	// Length is the number of blocks of the new branch. Defaults to Depth + 1, so that the tip rises.
	Length uint64

	// Fate applies to the transactions of the orphaned blocks. Each overrides it by transaction hash.
	Fate OrphanFate
	Each map[string]OrphanFate
}

// Fork replaces the newest blocks by a new branch and returns its tip. The new branch holds only the
// transactions with fate Reinclude; those returned to the pool wait for Mine. A fork may go below the
// final block, which a real network promises never to do. It panics when Depth is 0 or reaches the
// genesis block.
func (c *Chain) Fork(f Fork) chain.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()

	if f.Depth == 0 || f.Depth > c.tip() {
		panic(fmt.Sprintf("sim: a fork of %d blocks does not fit a chain of height %d", f.Depth, c.tip()))
	}

	if f.Length == 0 {
		f.Length = f.Depth + 1
	}

	orphans := c.orphanBlocks(f.Depth)
	reincluded := c.applyFates(f, orphans)

	for _, entry := range c.appendBlock(c.now(), reincluded) {
		c.returnToPool(entry)
	}

	for range f.Length - 1 {
		c.appendBlock(c.now(), nil)
	}

	c.evict()

	return c.blocks[c.tip()].ref
}

// orphanBlocks reverts the newest blocks and returns their transactions, oldest first.
func (c *Chain) orphanBlocks(depth uint64) []*receipt {
	var orphans []*receipt

	for range depth {
		top := c.blocks[c.tip()]
		orphans = append(slices.Clone(top.receipts), orphans...)

		c.balances.revert(top.ref.Height)
		c.nonces.revert(top.ref.Height)

		c.blocks = c.blocks[:c.tip()]
		for _, included := range top.receipts {
			delete(c.receipts, included.hash)
		}
	}

	c.final = min(c.final, c.tip())
	c.forks++

	return orphans
}

// applyFates returns the orphaned transactions to include again, and puts those with fate
// ReturnToPool into the pool.
func (c *Chain) applyFates(f Fork, orphans []*receipt) (reincluded []*poolEntry) {
	for _, orphan := range orphans {
		fate, overridden := f.Each[orphan.hash]
		if !overridden {
			fate = f.Fate
		}

		entry := &poolEntry{tx: orphan.tx, hash: orphan.hash}

		switch fate {
		case Reinclude:
			reincluded = append(reincluded, entry)
		case ReturnToPool:
			c.returnToPool(entry)
		case DropOrphan:
			c.dropped[entry.hash] = entry.tx
		}
	}

	return reincluded
}

// SendAgain puts a payment that a fork dropped into the pool once more, with the coin for it, as its sender does. It
// reports whether there is one.
func (c *Chain) SendAgain(hash string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	tx, ok := c.dropped[hash]
	if ok {
		delete(c.dropped, hash)
		c.fundFor(tx)
		c.returnToPool(&poolEntry{tx: tx, hash: hash})
	}

	return ok
}

// returnToPool puts a transaction into the pool unless another one has its nonce there.
func (c *Chain) returnToPool(entry *poolEntry) {
	if c.pool.byNonce[senderNonce{entry.tx.from, entry.tx.nonce}] == nil {
		_ = c.pool.add(entry.tx, entry.hash) // never refused: the nonce is free
	}
}
