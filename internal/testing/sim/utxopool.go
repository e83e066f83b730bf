package sim

import (
	"cmp"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// utxoEntry is a transaction in the pool or in a block.
type utxoEntry struct {
	tx      *utxoTx
	hash    string
	fee     uint64 // base units
	vsize   uint64
	arrival uint64 // ordinal of its arrival in the pool
	height  uint64 // of its block
}

// utxoPool holds the transactions that wait for a block; no two of them spend one output.
type utxoPool struct {
	byHash   map[string]*utxoEntry
	spender  map[chain.Outpoint]*utxoEntry
	arrivals uint64
	vsize    uint64 // of all
}

func newUTXOPool() utxoPool {
	return utxoPool{byHash: map[string]*utxoEntry{}, spender: map[chain.Outpoint]*utxoEntry{}}
}

func (p *utxoPool) add(entry *utxoEntry) {
	p.arrivals++
	entry.arrival = p.arrivals
	p.byHash[entry.hash] = entry
	p.vsize += entry.vsize

	for _, input := range entry.tx.inputs {
		p.spender[input] = entry
	}
}

// remove removes one transaction; its descendants stay.
func (p *utxoPool) remove(hash string) {
	entry := p.byHash[hash]
	if entry == nil {
		return
	}

	delete(p.byHash, hash)
	p.vsize -= entry.vsize

	for _, input := range entry.tx.inputs {
		delete(p.spender, input)
	}
}

// removeAll removes a transaction with its descendants.
func (p *utxoPool) removeAll(entry *utxoEntry) {
	for _, descendant := range p.descendants(entry) {
		p.remove(descendant.hash)
	}
}

// sorted returns the pool by arrival.
func (p *utxoPool) sorted() []*utxoEntry {
	entries := make([]*utxoEntry, 0, len(p.byHash))
	for _, entry := range p.byHash {
		entries = append(entries, entry)
	}

	slices.SortFunc(entries, func(a, b *utxoEntry) int { return cmp.Compare(a.arrival, b.arrival) })

	return entries
}

// ancestors returns the waiting ancestors of a transaction, parents first, and last the transaction itself.
func (p *utxoPool) ancestors(entry *utxoEntry) []*utxoEntry {
	var found []*utxoEntry

	var visit func(entry *utxoEntry)

	visit = func(entry *utxoEntry) {
		if slices.Contains(found, entry) {
			return
		}

		for _, input := range entry.tx.inputs {
			if parent := p.byHash[input.TxHash]; parent != nil {
				visit(parent)
			}
		}

		found = append(found, entry)
	}
	visit(entry)

	return found
}

// descendants returns a transaction and its waiting descendants.
func (p *utxoPool) descendants(entry *utxoEntry) []*utxoEntry {
	found := []*utxoEntry{entry}
	for next := 0; next < len(found); next++ {
		for vout := range found[next].tx.outputs {
			child := p.spender[chain.Outpoint{TxHash: found[next].hash, Vout: uint32(vout)}]
			if child != nil && !slices.Contains(found, child) {
				found = append(found, child)
			}
		}
	}

	return found
}

// sumOf returns the fees and the virtual size of transactions.
func sumOf(entries []*utxoEntry) (fee, vsize uint64) {
	for _, entry := range entries {
		fee += entry.fee
		vsize += entry.vsize
	}

	return fee, vsize
}

// floor returns the least rate that the pool takes now, in base units per 1000 vB.
func (u *UTXO) floor() uint64 { return max(u.relayRate, u.evictedRate) }

// accept adds a transaction to the pool by the policy of nodes. What it displaces goes with its
// descendants (BIP-125).
func (u *UTXO) accept(entry *utxoEntry) error {
	if err := u.checkInputs(entry); err != nil {
		return err
	}

	displaced, err := u.checkPolicy(entry)
	if err != nil {
		return err
	}

	for _, old := range displaced {
		u.pool.remove(old.hash)
	}

	u.pool.add(entry)

	if u.evictOversize(); u.pool.byHash[entry.hash] == nil {
		return refusedTx("pool_full", "the pool is full of transactions that pay more")
	}

	return nil
}

// refusedTx is the error of a transaction that the pool does not take now. It is fault.Unavailable, since
// it proves nothing: the transaction may be taken later.
func refusedTx(code, format string, args ...any) error {
	return fault.New(fault.Unavailable, code, format, args...)
}

// checkInputs sets a transaction's fee and returns an error when an input cannot be spent after the tip.
func (u *UTXO) checkInputs(entry *utxoEntry) error {
	var sum uint64

	for _, input := range entry.tx.inputs {
		output, ok := u.spendable(input, u.tip())
		if !ok {
			return refusedTx(
				"coin_spent", "output %s:%d is spent in a block, unknown or immature",
				input.TxHash, input.Vout,
			)
		}

		sum += output.amount
	}

	paid, ok := entry.tx.paid()
	if !ok || sum < paid {
		return fault.New(
			fault.Invalid, "insufficient_funds", "transaction %s pays %d of %d base units",
			entry.hash, paid, sum,
		)
	}

	entry.fee, entry.vsize = sum-paid, entry.tx.vsize()

	return nil
}

// spendable returns an output that no block up to a height spends: a mature one, or one of the pool.
func (u *UTXO) spendable(at chain.Outpoint, tip uint64) (utxoPayment, bool) {
	if output := u.unspent(at, tip); output != nil {
		mature := !output.coinbase || tip+1 >= output.height+u.config.Maturity
		return output.utxoPayment, mature
	}

	parent := u.pool.byHash[at.TxHash]
	if parent == nil || int(at.Vout) >= len(parent.tx.outputs) {
		return utxoPayment{}, false
	}

	return parent.tx.outputs[at.Vout], true
}

// checkPolicy returns what a transaction displaces. It fails for a fee below the floor, a replacement
// that pays too little, and too many unconfirmed ancestors or descendants.
func (u *UTXO) checkPolicy(entry *utxoEntry) (displaced []*utxoEntry, err error) {
	if least := feeAt(u.floor(), entry.vsize); entry.fee < least {
		return nil, refusedTx(
			"fee_below_floor", "the fee of %d is below the %d that the pool takes",
			entry.fee, least,
		)
	}

	if entry.vsize > maxTransactionSize {
		return nil, fault.New(
			fault.Invalid, "transaction_malformed", "a transaction of %d vB is not relayed",
			entry.vsize,
		)
	}

	direct, displaced := u.conflicts(entry.tx)

	ancestors := u.pool.ancestors(entry)
	if len(ancestors) > maxPoolAncestors {
		return nil, refusedTx(
			"ancestors_exceeded", "it has %d unconfirmed ancestors, itself included, at most %d are taken",
			len(ancestors), maxPoolAncestors,
		)
	}

	for _, ancestor := range ancestors[:len(ancestors)-1] {
		if slices.Contains(displaced, ancestor) {
			return nil, refusedTx("replacement_invalid", "it spends an output of what it displaces")
		}

		others := slices.DeleteFunc(
			u.pool.descendants(ancestor),
			func(other *utxoEntry) bool { return slices.Contains(displaced, other) },
		)
		if len(others) >= maxPoolAncestors {
			return nil, refusedTx(
				"descendants_exceeded", "%s has %d unconfirmed descendants already, itself included",
				ancestor.hash, maxPoolAncestors,
			)
		}
	}

	return displaced, u.checkReplacement(entry, direct, displaced)
}

// conflicts returns the waiting transactions that share an input with one, and these with their
// descendants.
func (u *UTXO) conflicts(tx *utxoTx) (direct, displaced []*utxoEntry) {
	for _, input := range tx.inputs {
		old := u.pool.spender[input]
		if old == nil || slices.Contains(direct, old) {
			continue
		}

		direct = append(direct, old)

		for _, descendant := range u.pool.descendants(old) {
			if !slices.Contains(displaced, descendant) {
				displaced = append(displaced, descendant)
			}
		}
	}

	return direct, displaced
}

// checkReplacement checks rules 2 to 6 of BIP-125 and Bitcoin Core: no unconfirmed input of its own, the
// fees of what it displaces and its own relay, at most 100 displaced, and a higher rate.
func (u *UTXO) checkReplacement(entry *utxoEntry, direct, displaced []*utxoEntry) error {
	if len(direct) == 0 {
		return nil
	}

	for _, input := range entry.tx.inputs {
		if u.pool.byHash[input.TxHash] != nil && u.pool.spender[input] == nil {
			return refusedTx("replacement_invalid", "it spends an unconfirmed output that is new to it")
		}
	}

	if len(displaced) > maxDisplaced {
		return refusedTx("replacement_invalid", "it displaces %d transactions", len(displaced))
	}

	fees, _ := sumOf(displaced)
	if least := fees + feeAt(u.config.RelayRate, entry.vsize); entry.fee < least {
		return refusedTx(
			"replacement_underpriced", "it pays %d, but what it displaces and its relay come to %d",
			entry.fee, least,
		)
	}

	for _, old := range direct {
		if compareRates(entry.fee, entry.vsize, old.fee, old.vsize) <= 0 {
			return refusedTx("replacement_underpriced", "its fee rate is not above that of %s", old.hash)
		}
	}

	return nil
}

// descendantRate returns fee and size of the better of a transaction alone and with its descendants.
func (p *utxoPool) descendantRate(entry *utxoEntry) (fee, vsize uint64) {
	fee, vsize = sumOf(p.descendants(entry))
	if compareRates(entry.fee, entry.vsize, fee, vsize) > 0 {
		return entry.fee, entry.vsize
	}

	return fee, vsize
}

// cheapest returns the waiting transaction of the lowest descendant rate, of several the newest.
func (p *utxoPool) cheapest() (lowest *utxoEntry, fee, vsize uint64) {
	for _, entry := range p.sorted() {
		ownFee, ownSize := p.descendantRate(entry)
		if lowest == nil || compareRates(ownFee, ownSize, fee, vsize) <= 0 {
			lowest, fee, vsize = entry, ownFee, ownSize
		}
	}

	return lowest, fee, vsize
}

// evictOversize evicts the cheapest packages while the pool exceeds its size, and raises the floor above
// what they paid.
func (u *UTXO) evictOversize() {
	for u.pool.vsize > u.poolVSize {
		entry, fee, vsize := u.pool.cheapest()
		u.pool.removeAll(entry)
		u.evictedRate = max(u.evictedRate, fee*1000/vsize+u.config.RelayRate)
	}
}

// evictBelowFloor evicts the packages that pay less than the floor.
func (u *UTXO) evictBelowFloor() {
	for len(u.pool.byHash) > 0 {
		entry, fee, vsize := u.pool.cheapest()
		if fee >= feeAt(u.floor(), vsize) {
			return
		}

		u.pool.removeAll(entry)
	}
}

// evictInvalid evicts what the branch of the tip cannot include, with its descendants.
func (u *UTXO) evictInvalid() {
	for _, entry := range u.pool.sorted() {
		for _, input := range entry.tx.inputs {
			if _, ok := u.spendable(input, u.tip()); !ok && u.pool.byHash[entry.hash] != nil {
				u.pool.removeAll(entry)
			}
		}
	}
}
