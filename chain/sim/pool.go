package sim

// The pool: transactions that wait for a block.

import (
	"cmp"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

type slot struct {
	from  account
	nonce uint64
}

type pooled struct {
	tx      *transaction
	hash    string
	arrival uint64
}

// pool holds at most one transaction per sender and nonce.
type pool struct {
	byHash   map[string]*pooled
	bySlot   map[slot]*pooled
	arrivals uint64
}

func newPool() pool { return pool{byHash: map[string]*pooled{}, bySlot: map[slot]*pooled{}} }

// replacementPrice is the least that displaces a price: a tenth more, rounded up.
func replacementPrice(old uint64) uint64 { return old + (old+9)/10 }

// add takes a transaction, displacing the one at its nonce when it pays a tenth more in both prices.
func (p *pool) add(tx *transaction, hash string) error {
	s := slot{tx.from, tx.nonce}
	if old := p.bySlot[s]; old != nil {
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
	entry := &pooled{tx: tx, hash: hash, arrival: p.arrivals}
	p.byHash[hash], p.bySlot[s] = entry, entry

	return nil
}

func (p *pool) remove(hash string) bool {
	entry := p.byHash[hash]
	if entry == nil {
		return false
	}

	delete(p.byHash, hash)
	delete(p.bySlot, slot{entry.tx.from, entry.tx.nonce})

	return true
}

// sorted lists the pool, the better payer first, then in order of arrival.
func (p *pool) sorted(base uint64) []*pooled {
	out := make([]*pooled, 0, len(p.byHash))
	for _, entry := range p.byHash {
		out = append(out, entry)
	}

	slices.SortFunc(out, func(a, b *pooled) int {
		priceA, _ := a.tx.price(base)
		priceB, _ := b.tx.price(base)

		return cmp.Or(cmp.Compare(priceB, priceA), cmp.Compare(a.arrival, b.arrival))
	})

	return out
}

// reachable reports whether no nonce is missing between the sender's next one and the transaction's.
func (c *Chain) reachable(entry *pooled) bool {
	for n := c.nonces.at(entry.tx.from.address(), c.tip()); n < entry.tx.nonce; n++ {
		if c.waiting.bySlot[slot{entry.tx.from, n}] == nil {
			return false
		}
	}

	return true
}

// affordable reports whether the sender holds, after the block of a height, the native coin that the
// transaction can cost. Tokens are not looked at: a token that is missing makes it revert.
func (c *Chain) affordable(tx *transaction, height uint64) bool {
	value, ok := tx.spendsNative()
	if !ok {
		return false
	}

	cost, ok := value.AddOK(tx.maxFee())

	return ok &&
		!c.balances.at(chain.Holding{Address: tx.from.address(), AssetID: c.native.ID}, height).Less(cost)
}
