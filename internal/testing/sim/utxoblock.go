package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// utxoOutput is an output of the canonical chain.
type utxoOutput struct {
	utxoPayment
	height   uint64 // of its block
	coinbase bool
	spentBy  string // hash of the transaction; "" while unspent
	spentAt  uint64 // height of its block
}

// utxoBlock is what a block includes.
type utxoBlock struct{ entries []*utxoEntry }

// unspent returns an output that the blocks up to a height have and do not spend; nil for none.
func (u *UTXO) unspent(at chain.Outpoint, tip uint64) *utxoOutput {
	output := u.outputs[at]
	if output == nil || output.height > tip || (output.spentBy != "" && output.spentAt <= tip) {
		return nil
	}

	return output
}

// Mine adds n blocks from the pool, timed now, and returns the new tip. Packages of a transaction and its
// ancestors are included by descending fee rate, as far as they fit.
func (u *UTXO) Mine(n int) chain.Ref {
	u.mu.Lock()
	defer u.mu.Unlock()

	for range n {
		u.appendBlock(u.now(), u.template())
	}

	return u.tipRef()
}

// MineEmpty adds n blocks without transactions and returns the new tip.
func (u *UTXO) MineEmpty(n int) chain.Ref {
	u.mu.Lock()
	defer u.mu.Unlock()

	for range n {
		u.appendBlock(u.now(), nil)
	}

	return u.tipRef()
}

// Tick mines the blocks that are due at a time, one per block time since the tip, and returns their
// number.
func (u *UTXO) Tick(now time.Time) int {
	u.mu.Lock()
	defer u.mu.Unlock()

	for mined := 0; ; mined++ {
		due := u.tipRef().Time.Add(u.blockTime)
		if due.After(now) {
			return mined
		}

		u.appendBlock(due, u.template())
	}
}

// Coinbase mines a block whose reward pays an address, and returns the coin. It matures after the
// configured number of confirmations.
func (u *UTXO) Coinbase(to chain.Address, amount chain.Amount) chain.Outpoint {
	owner, units := mustAccount(to), mustUnits(amount)

	u.mu.Lock()
	defer u.mu.Unlock()

	u.rewards++
	reward := &utxoTx{
		network: u.networkID,
		salt:    u.rewards,
		outputs: []utxoPayment{{to: owner, amount: units}},
	}
	entry := &utxoEntry{tx: reward, hash: reward.hash(), vsize: reward.vsize()}
	u.appendBlock(u.now(), append([]*utxoEntry{entry}, u.template()...))

	return chain.Outpoint{TxHash: entry.hash}
}

// template returns the transactions of the next block, parents before children.
func (u *UTXO) template() []*utxoEntry {
	var (
		chosen []*utxoEntry
		vsize  uint64
	)

	isChosen := func(entry *utxoEntry) bool { return slices.Contains(chosen, entry) }
	waiting := u.pool.sorted()

	for len(waiting) > 0 {
		// The package of the highest rate; of several the oldest.
		var (
			best              []*utxoEntry
			bestFee, bestSize uint64
		)

		for _, entry := range waiting {
			candidates := slices.DeleteFunc(u.pool.ancestors(entry), isChosen)

			fee, size := sumOf(candidates)
			if best == nil || compareRates(fee, size, bestFee, bestSize) > 0 {
				best, bestFee, bestSize = candidates, fee, size
			}
		}

		last := best[len(best)-1]
		if bestFee >= feeAt(u.minerRate, bestSize) && vsize+bestSize <= u.config.BlockVSize {
			chosen, vsize = append(chosen, best...), vsize+bestSize
		}

		waiting = slices.DeleteFunc(
			waiting,
			func(entry *utxoEntry) bool { return entry == last || isChosen(entry) },
		)
	}

	return chosen
}

// appendBlock adds a block with the candidates whose inputs it can spend and returns the others.
func (u *UTXO) appendBlock(at time.Time, candidates []*utxoEntry) (excluded []*utxoEntry) {
	var (
		block  utxoBlock
		hashes []string
	)

	next := u.nextHeader(at)

	for _, entry := range candidates {
		if !u.connectable(entry, next.Height) {
			excluded = append(excluded, entry)
			continue
		}

		u.connect(entry, next.Height)
		block.entries, hashes = append(block.entries, entry), append(hashes, entry.hash)
	}

	u.sealHeader(next, hashes)
	u.blocks = append(u.blocks, block)

	if u.pool.vsize <= u.poolVSize/2 {
		u.evictedRate = 0
	}

	return excluded
}

// connectable reports whether a block at a height can spend a transaction's inputs.
func (u *UTXO) connectable(entry *utxoEntry, height uint64) bool {
	for _, input := range entry.tx.inputs {
		output := u.unspent(input, height)
		if output == nil || (output.coinbase && height < output.height+u.config.Maturity) {
			return false
		}
	}

	return true
}

// connect applies a transaction to the outputs, and removes it and what conflicts with it from the pool.
func (u *UTXO) connect(entry *utxoEntry, height uint64) {
	u.pool.remove(entry.hash)

	for _, input := range entry.tx.inputs {
		output := u.outputs[input]
		output.spentBy, output.spentAt = entry.hash, height

		if rival := u.pool.spender[input]; rival != nil {
			u.pool.removeAll(rival)
		}
	}

	for vout, output := range entry.tx.outputs {
		u.outputs[chain.Outpoint{TxHash: entry.hash, Vout: uint32(vout)}] = &utxoOutput{
			utxoPayment: output,
			height:      height,
			coinbase:    len(entry.tx.inputs) == 0,
		}
	}

	entry.height = height
	u.included[entry.hash] = entry
}

// Fork replaces the newest blocks by a new branch and returns its tip; see Chain.Fork. The first block of
// the branch double-spends the orphaned transactions of the hashes given, to other addresses. Orphaned
// block rewards are gone, with all that spends them. It panics when the branch cannot spend the inputs.
func (u *UTXO) Fork(f Fork, doubleSpent ...string) chain.Ref {
	u.mu.Lock()
	defer u.mu.Unlock()

	f = u.checkFork(f)
	orphans := u.disconnectBlocks(f.Depth)

	var (
		first    []*utxoEntry
		returned []*utxoEntry
	)

	// Double spends come first, then what the fates say.
	for _, hash := range doubleSpent {
		at := slices.IndexFunc(orphans, func(orphan *utxoEntry) bool { return orphan.hash == hash })
		if at < 0 {
			panic(fmt.Sprintf("sim: transaction %s is in none of the orphaned blocks", hash))
		}

		spend := u.conflicting(orphans[at])
		first = append(first, spend)
	}

	doubles := len(first)

	for _, orphan := range orphans {
		switch fate := f.fateOf(orphan.hash); {
		case slices.Contains(doubleSpent, orphan.hash), len(orphan.tx.inputs) == 0, fate == DropOrphan:
		case fate == Reinclude:
			first = append(first, orphan)
		default:
			returned = append(returned, orphan)
		}
	}

	excluded := u.appendBlock(u.now(), first)
	for _, spend := range first[:doubles] {
		if slices.Contains(excluded, spend) {
			panic("sim: the inputs of a double spend are not on the other branch")
		}
	}

	for range f.Length - 1 {
		u.appendBlock(u.now(), nil)
	}

	u.returnToPool(append(returned, excluded...))

	return u.tipRef()
}

// disconnectBlocks reverts the newest blocks and returns their transactions, oldest first.
func (u *UTXO) disconnectBlocks(depth uint64) []*utxoEntry {
	var orphans []*utxoEntry

	for range depth {
		top := u.blocks[u.tip()]
		for _, entry := range slices.Backward(top.entries) {
			delete(u.included, entry.hash)

			for vout := range entry.tx.outputs {
				delete(u.outputs, chain.Outpoint{TxHash: entry.hash, Vout: uint32(vout)})
			}

			for _, input := range entry.tx.inputs {
				output := u.outputs[input]
				output.spentBy, output.spentAt = "", 0
			}
		}

		orphans = append(slices.Clone(top.entries), orphans...)
		u.blocks, u.headers = u.blocks[:u.tip()], u.headers[:u.tip()]
	}

	u.forks++

	return orphans
}

// returnToPool puts orphaned transactions back into the pool as far as the branch can include them, and
// evicts what it cannot.
func (u *UTXO) returnToPool(orphans []*utxoEntry) {
	for _, entry := range orphans {
		_, conflicts := u.conflicts(entry.tx)
		if u.checkInputs(entry) == nil && len(conflicts) == 0 {
			u.pool.add(entry)
		}
	}

	u.evictInvalid()
	u.evictOversize()
}

// Coins returns the confirmed outputs of a party that nothing in a block has spent, oldest first.
func (u *UTXO) Coins(owner chain.Party) []chain.Coin {
	u.mu.Lock()
	defer u.mu.Unlock()

	var coins []chain.Coin

	for at, output := range u.outputs {
		if output.to.address() == owner.Address && output.spentBy == "" {
			coins = append(coins, chain.Coin{
				Outpoint: at,
				Owner:    owner,
				Amount:   chain.Units(output.amount),
				Height:   output.height,
			})
		}
	}

	slices.SortFunc(coins, func(a, b chain.Coin) int {
		return cmp.Or(
			cmp.Compare(a.Height, b.Height), cmp.Compare(a.Outpoint.TxHash, b.Outpoint.TxHash),
			cmp.Compare(a.Outpoint.Vout, b.Outpoint.Vout),
		)
	})

	return coins
}

// Balance returns the sum of an address' coins at the tip, immature ones included, in base units.
func (u *UTXO) Balance(of chain.Address) (sum chain.Amount) {
	for _, coin := range u.Coins(chain.Party{Address: of}) {
		sum = sum.Add(coin.Amount)
	}

	return sum
}
