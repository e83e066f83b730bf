package sim

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// Fund adds an amount, in base units, to an address' balance at every height, genesis included. No
// transaction shows it and no fork reverts it.
func (c *Chain) Fund(to chain.Address, symbol string, amount chain.Amount) {
	c.chain.Fund(to, symbol, amount)
}

// Pay puts a payment by a new, funded external account into the pool and returns its transaction
// hash. The amount is in base units; 0 is sent too.
func (c *Chain) Pay(to chain.Address, symbol string, amount chain.Amount) string {
	return c.chain.Pay(to, symbol, amount)
}

// PayMany puts one transaction with several payments into the pool, as an exchange sends them, and
// returns its hash. It panics when an output after the first pays native coin.
func (c *Chain) PayMany(outputs ...chain.Output) string { return c.chain.PayMany(outputs...) }

// PayInternal sends native coin, in base units, through a contract and returns the transaction hash. Blocks
// and pool do not show the transfer; the recipient's balance does.
func (c *Chain) PayInternal(to chain.Address, amount chain.Amount) string {
	return c.chain.PayInternal(to, amount)
}

// PayFailing is Pay for a payment that reverts when it is mined.
func (c *Chain) PayFailing(to chain.Address, symbol string, amount chain.Amount) string {
	return c.chain.PayFailing(to, symbol, amount)
}

// Drop removes a transaction from the pool and reports whether it was there.
func (c *Chain) Drop(hash string) bool { return c.chain.Drop(hash) }

// Replace replaces a pooled transaction of any sender by one that pays 10 % more for its gas and
// transfers nothing. It returns the hash of the replacement.
func (c *Chain) Replace(hash string) string { return c.chain.Replace(hash) }

// SetFee sets the base fee, which every transaction has to pay, and the priority price that the driver
// offers. Both are base units of the native coin per gas. Pooled transactions below the base fee wait.
func (c *Chain) SetFee(base, priority uint64) { c.chain.SetFee(base, priority) }

// Freeze sets whether every transfer of an asset to an address fails.
func (c *Chain) Freeze(address chain.Address, symbol string, frozen bool) {
	c.chain.Freeze(address, symbol, frozen)
}

// Mine adds n blocks from the pool, timed now, and returns the new tip. A transaction with too low a
// price, a nonce gap before it or too little funds stays in the pool; an expired one is removed.
func (c *Chain) Mine(n int) chain.Ref { return c.chain.Mine(n) }

// Run mines a block every Config.BlockTime until the context ends.
func (c *Chain) Run(ctx context.Context) { c.chain.Run(ctx) }

// Advance moves the network's time forward relative to its clock. It mines no block.
func (c *Chain) Advance(d time.Duration) { c.chain.Advance(d) }

// Orphans selects the fate of the transactions in the blocks that Fork replaces.
type Orphans int

// The fates of orphans.
const (
	ReturnOrphans    Orphans = iota // to the pool, where they wait for Mine
	DropOrphans                     // from the network, as if they had never been sent
	ReincludeOrphans                // into the first block of the new branch
)

// Fork replaces the newest blocks, depth in number, by a new branch and returns its tip. A fork may go below
// the final block, which a real network promises never to do. It panics when depth is 0 or reaches the
// genesis block.
func (c *Chain) Fork(depth uint64, orphans Orphans) chain.Ref {
	fork := sim.Fork{Depth: depth}

	switch orphans {
	case ReturnOrphans:
		fork.Fate = sim.ReturnToPool
	case DropOrphans:
		fork.Fate = sim.DropOrphan
	case ReincludeOrphans:
		fork.Fate = sim.Reinclude
	}

	return c.chain.Fork(fork)
}

// Fail makes every call of the driver return err before it has an effect, like a node that is down. A nil err
// ends it.
func (c *Chain) Fail(err error) {
	if err == nil {
		c.chain.SetIntercept(nil)
		return
	}

	c.chain.SetIntercept(func(context.Context, sim.Method) error { return err })
}

// LoseNextResponses makes the next broadcasts take effect but return a timeout, times in number.
func (c *Chain) LoseNextResponses(times int) { c.chain.LoseNextResponses(times) }
