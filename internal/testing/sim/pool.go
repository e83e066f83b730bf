package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// pool holds the transactions that wait for a block, at most one per sender and nonce.
type pool struct {
	byHash   map[string]*poolEntry
	byNonce  map[senderNonce]*poolEntry
	arrivals uint64 // number of transactions added so far
}

type senderNonce struct {
	from  account
	nonce uint64
}

type poolEntry struct {
	tx      *transaction
	hash    string
	arrival uint64 // ordinal of its arrival
	// unpaid is when the sender was first seen to lack the coin for it, or to offer less than the base fee; zero while
	// neither is so.
	unpaid time.Time
}

// unpaidFor is how long a pool keeps what its sender cannot pay for, or offers too little for: the default of
// go-ethereum's txpool.lifetime for what cannot be executed. Pools that are full drop the latter sooner.
const unpaidFor = 3 * time.Hour

func newPool() pool {
	return pool{byHash: map[string]*poolEntry{}, byNonce: map[senderNonce]*poolEntry{}}
}

// add adds a transaction, replacing the one at its nonce when it pays 10 % more in both prices.
// Otherwise it returns fault.State with code replacement_underpriced.
func (p *pool) add(tx *transaction, hash string) error {
	key := senderNonce{tx.from, tx.nonce}
	if old := p.byNonce[key]; old != nil {
		if old.hash == hash {
			return nil
		}

		if tx.maxPrice < replacementPrice(old.tx.maxPrice) ||
			tx.priority < replacementPrice(old.tx.priority) {
			return fault.New(
				fault.State,
				"replacement_underpriced",
				"transaction %s waits at nonce %d of %s: one that is to displace it must pay 10 %% more in both prices",
				old.hash,
				tx.nonce,
				tx.from.address(),
			)
		}

		p.remove(old.hash)
	}

	p.arrivals++
	entry := &poolEntry{tx: tx, hash: hash, arrival: p.arrivals}
	p.byHash[hash], p.byNonce[key] = entry, entry

	return nil
}

// replacementPrice returns the lowest price that replaces a price: 10 % more, rounded up.
func replacementPrice(old uint64) uint64 { return old + (old+9)/10 }

// remove removes a transaction and reports whether it was there.
func (p *pool) remove(hash string) bool {
	entry := p.byHash[hash]
	if entry == nil {
		return false
	}

	delete(p.byHash, hash)
	delete(p.byNonce, senderNonce{entry.tx.from, entry.tx.nonce})

	return true
}

// unpaidLong reports whether the sender of a transaction has lacked the coin for it, or offered too little, for
// unpaidFor, as of a block.
func (c *Chain) unpaidLong(entry *poolEntry, tip chain.Ref) bool {
	switch {
	case c.affordable(entry.tx, tip.Height) && entry.tx.maxPrice >= c.baseFee:
		entry.unpaid = time.Time{}
	case entry.unpaid.IsZero():
		entry.unpaid = tip.Time
	}

	return !entry.unpaid.IsZero() && tip.Time.Sub(entry.unpaid) >= unpaidFor
}

// sorted returns the pool by descending gas price at a base fee, then by arrival.
func (p *pool) sorted(baseFee uint64) []*poolEntry {
	entries := make([]*poolEntry, 0, len(p.byHash))
	for _, entry := range p.byHash {
		entries = append(entries, entry)
	}

	slices.SortFunc(entries, func(a, b *poolEntry) int {
		priceA, _ := a.tx.price(baseFee)
		priceB, _ := b.tx.price(baseFee)

		return cmp.Or(cmp.Compare(priceB, priceA), cmp.Compare(a.arrival, b.arrival))
	})

	return entries
}

// executable reports whether the pool has no nonce gap between the sender's next nonce and the
// transaction's.
func (c *Chain) executable(entry *poolEntry) bool {
	for nonce := c.nonces.at(entry.tx.from.address(), c.tip()); nonce < entry.tx.nonce; nonce++ {
		if c.pool.byNonce[senderNonce{entry.tx.from, nonce}] == nil {
			return false
		}
	}

	return true
}

// affordable reports whether the sender holds the native coin that the transaction can cost after the
// block of a height. It ignores tokens: a transaction with too few of them reverts.
func (c *Chain) affordable(tx *transaction, height uint64) bool {
	value, ok := tx.nativeValue()
	if !ok {
		return false
	}

	cost, ok := value.AddOK(tx.maxFee())
	balance := c.balances.at(chain.Holding{Address: tx.from.address(), AssetID: c.native.ID}, height)

	return ok && !balance.Less(cost)
}
