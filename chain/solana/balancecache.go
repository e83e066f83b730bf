package solana

import (
	"sync"

	solanago "github.com/gagliardetto/solana-go"
)

// balanceCache stores the balances of accounts at the last complete reading of their histories. It only
// saves requests.
type balanceCache struct {
	mu       sync.Mutex
	readings map[solanago.PublicKey]balanceReading
}

// balanceReading is a balance, in base units, of an account whose history was read up to a height.
type balanceReading struct {
	balance, height uint64
	// unsettledTo is the height up to which the account is read again now and then although its balance stays:
	// the chain may fork, a node may list a transaction late, and a payment may equal what a sweep took.
	unsettledTo uint64
	since       uint64 // the height from which it is read again then
	readAt      uint64 // the height at which it was last read
}

const (
	maxCachedBalances = 1 << 20

	// settleBlocks is the number of blocks after a transfer for which an account is unsettled, rereadBlocks that
	// between two readings meanwhile: one and four minutes, or half of that, by the network's pace.
	settleBlocks = 600
	rereadBlocks = 150
)

func newBalanceCache() *balanceCache {
	return &balanceCache{readings: map[solanago.PublicKey]balanceReading{}}
}

// plan reports whether the history of an account with a balance has to be read for a range of heights, and from
// which height. A range that was read already is read once more, since the chain may have forked.
func (c *balanceCache) plan(key solanago.PublicKey, balance, from, to uint64) (readFrom uint64, needed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	r, ok := c.readings[key]
	if !ok || r.height >= from {
		return from, true
	}

	if r.unsettledTo < to {
		return from, r.balance != balance
	}

	return min(from, r.since), r.balance != balance || r.readAt+rereadBlocks <= to
}

// before returns the balance of the last reading that ended before a height.
func (c *balanceCache) before(key solanago.PublicKey, from uint64) (balance uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	r, ok := c.readings[key]

	return r.balance, ok && r.height < from
}

// has reports whether an account was read.
func (c *balanceCache) has(key solanago.PublicKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	_, ok := c.readings[key]

	return ok
}

// skipped stores that an account was seen unchanged at a height.
func (c *balanceCache) skipped(key solanago.PublicKey, height uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	r := c.readings[key]
	r.height = height
	c.readings[key] = r
}

// put stores a complete reading of a range of heights. moved is set when something may have moved in it.
func (c *balanceCache) put(key solanago.PublicKey, balance, from, height uint64, moved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if len(c.readings) >= maxCachedBalances {
		clear(c.readings)
	}

	r := c.readings[key]
	if moved && balance != r.balance || r.since == 0 {
		r.since = from
	}

	if moved && balance != r.balance {
		r.unsettledTo = height + settleBlocks
	}

	r.balance, r.height, r.readAt = balance, height, height
	c.readings[key] = r
}

// unsettle makes an account be read the next time although its balance may stay.
func (c *balanceCache) unsettle(key solanago.PublicKey) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if r, ok := c.readings[key]; ok {
		r.readAt, r.unsettledTo = 0, r.height+settleBlocks
		c.readings[key] = r
	}
}
