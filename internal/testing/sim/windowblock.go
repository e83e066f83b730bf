package sim

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// referenceOf returns how a transaction refers to a block: by the first 8 bytes of its hash.
func referenceOf(block chain.Ref) uint64 {
	hash, _ := hex.DecodeString(block.Hash[:16]) // made by sealHeader
	return binary.BigEndian.Uint64(hash)
}

// setWindow makes a transaction refer to a block and limits its validity from there. The reference takes
// the place of the nonce: equal orders at one tip are one transaction, at different tips they differ.
func (w *Windows) setWindow(tx *transaction, height uint64) {
	tx.nonce = referenceOf(w.headers[height].Ref)

	if w.config.ValidBlocks > 0 {
		tx.validToHeight = height + w.config.ValidBlocks
	}

	if w.config.ValidFor > 0 {
		tx.validTo = uint64(w.headers[height].Time.Add(w.config.ValidFor).UnixMilli())
	}
}

// withinWindow reports whether a block of that height and time may include a transaction: the block that
// it refers to is on the branch, and its validity has not ended and is not longer than the window.
func (w *Windows) withinWindow(tx *transaction, height uint64, at time.Time) bool {
	if tx.isDurable() {
		return w.isUsable(tx, height)
	}

	reference, known := w.refs[tx.nonce]

	return known && reference < height && !tx.expired(height, at) && w.bounded(tx, reference)
}

// bounded reports whether a transaction's validity is no longer than the window from a height.
func (w *Windows) bounded(tx *transaction, height uint64) bool {
	longest := &transaction{}
	w.setWindow(longest, height)

	within := func(bound, most uint64) bool { return most == 0 || (bound != 0 && bound <= most) }

	return within(tx.validToHeight, longest.validToHeight) && within(tx.validTo, longest.validTo)
}

// Mine adds n blocks from the pool, timed now, and returns the new tip. A transaction with too low a
// price or too little funds stays in the pool; one outside of its window is removed.
func (w *Windows) Mine(n int) chain.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()

	for range n {
		w.mine(w.now())
	}

	return w.tipRef()
}

// MineEmpty adds n blocks without transactions and returns the new tip.
func (w *Windows) MineEmpty(n int) chain.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()

	for range n {
		w.appendBlock(w.now(), nil)
		w.evictExpired()
	}

	return w.tipRef()
}

// Tick mines the blocks that are due at a time, one per block time since the tip, and returns their
// number.
func (w *Windows) Tick(now time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()

	for mined := 0; ; mined++ {
		due := w.tipRef().Time.Add(w.blockTime)
		if due.After(now) {
			return mined
		}

		w.mine(due)
	}
}

func (w *Windows) mine(at time.Time) {
	waiting := make([]*poolEntry, 0, len(w.pool))
	for _, entry := range w.pool {
		waiting = append(waiting, entry)
	}

	slices.SortFunc(waiting, func(a, b *poolEntry) int { return cmp.Compare(a.arrival, b.arrival) })
	w.appendBlock(at, waiting)
	w.evictExpired()
}

// evictExpired removes from the pool what no block after the tip can include.
func (w *Windows) evictExpired() {
	tip := w.tipRef()
	for hash, entry := range w.pool {
		if !w.withinWindow(entry.tx, tip.Height+1, tip.Time) {
			delete(w.pool, hash)
		}
	}
}

// appendBlock adds a block with the candidates that can be executed and returns the others.
func (w *Windows) appendBlock(at time.Time, candidates []*poolEntry) (excluded []*poolEntry) {
	var (
		included []*receipt
		hashes   []string
	)

	next := w.nextHeader(at)

	for _, entry := range candidates {
		result, ok := w.execute(entry, next.Ref)
		if !ok {
			excluded = append(excluded, entry)
			continue
		}

		included, hashes = append(included, result), append(hashes, entry.hash)
		w.receipts[entry.hash] = result
		delete(w.pool, entry.hash)
	}

	w.sealHeader(next, hashes)
	w.blocks = append(w.blocks, included)
	w.refs[referenceOf(w.tipRef())] = w.tip()

	if tip := w.tip(); tip > w.config.FinalDepth {
		w.final = max(w.final, tip-w.config.FinalDepth)
	}

	return excluded
}

// execute applies one transaction to the state after the block. ok is false when the block cannot
// include it.
func (w *Windows) execute(entry *poolEntry, in chain.Ref) (included *receipt, ok bool) {
	tx := entry.tx
	price := max(w.price, tx.priority)

	if w.receipts[entry.hash] != nil || !w.withinWindow(tx, in.Height, in.Time) || price > tx.maxPrice ||
		!w.ledger.affordable(tx, in.Height) {
		return nil, false
	}

	included = &receipt{
		tx:     tx,
		hash:   entry.hash,
		height: in.Height,
		fee:    chain.Units(price).Mul(tx.gas()),
	}
	holding := chain.Holding{Address: tx.from.address(), AssetID: w.native.ID}
	w.ledger.debit(holding, in.Height, included.fee)
	w.advanceNonce(tx, in.Height)

	if w.failing[entry.hash] {
		included.reverted = true
		return included, true
	}

	included.shown, ok = w.ledger.applyMoves(entry.hash, in.Height, tx.moves())
	included.reverted = !ok

	return included, true
}

// Fork replaces the newest blocks by a new branch and returns its tip; see Chain.Fork. Transactions that
// refer to an orphaned block can never be included on the new branch.
func (w *Windows) Fork(f Fork) chain.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()

	f = w.checkFork(f)

	var reincluded []*poolEntry

	for _, orphan := range w.disconnectBlocks(f.Depth) {
		w.arrivals++
		entry := &poolEntry{tx: orphan.tx, hash: orphan.hash, arrival: w.arrivals}

		switch f.fateOf(orphan.hash) {
		case Reinclude:
			reincluded = append(reincluded, entry)
		case ReturnToPool:
			w.pool[entry.hash] = entry
		case DropOrphan:
		}
	}

	for _, entry := range w.appendBlock(w.now(), reincluded) {
		w.pool[entry.hash] = entry
	}

	for range f.Length - 1 {
		w.appendBlock(w.now(), nil)
	}

	w.evictExpired()

	return w.tipRef()
}

// disconnectBlocks reverts the newest blocks and returns their transactions, oldest first.
func (w *Windows) disconnectBlocks(depth uint64) []*receipt {
	var orphans []*receipt

	for range depth {
		height := w.tip()
		top := w.blocks[height]

		orphans = append(slices.Clone(top), orphans...)
		for _, included := range top {
			delete(w.receipts, included.hash)
		}

		w.ledger.balances.revert(height)
		w.ledger.nonces.revert(height)
		delete(w.refs, referenceOf(w.tipRef()))
		w.blocks, w.headers = w.blocks[:height], w.headers[:height]
	}

	w.final = min(w.final, w.tip())
	w.forks++

	return orphans
}
