package simulation

import (
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file plays what only networks whose transactions spend outputs have: dust, block rewards, miners who leave out
// what pays little, and payers who displace what they sent.

// leastOutput is the smallest output that nodes relay, in base units.
const leastOutput = 294

// playCoins plays a fault of a network of outputs; others have none of them.
func (w *harness) playCoins(op Op) {
	n, ok := w.networks[0].(*utxoNetwork)
	if !ok {
		return
	}

	m := w.merchant(op.A)

	switch {
	case op.Kind == PayDust:
		if to, ok := w.depositOn(n, m, op.B); ok {
			for i := range 1 + op.C%12 {
				w.pooled[0] = append(w.pooled[0], n.Pay(to, chain.Units(leastOutput+(op.C>>8+97*i)%600)))
			}
		}
	case op.Kind == MineReward:
		to, ok := m.wallets[0], true
		if op.B%2 == 0 {
			to, ok = w.depositOn(n, m, op.B>>1)
		}

		if ok {
			n.Coinbase(to, chain.Units(1_000_000+op.C%1_000_000))
		}
	case op.Kind == HoldBack:
		n.holdBack(op.B % 4 * sim.DefaultFeeRate)
	default:
	}
}

// depositOn returns one of a merchant's deposit addresses on a network.
func (w *harness) depositOn(n network, m *merchant, which uint64) (chain.Address, bool) {
	var on []chain.Address

	for _, at := range m.places {
		if at.network == n.slug() {
			on = append(on, at.Address)
		}
	}

	return pick(on, which)
}

// heldBack reports whether miners leave out what pays little.
func (w *harness) heldBack() bool {
	n, ok := w.networks[0].(*utxoNetwork)

	return ok && n.minerFloor > 0
}

// isWaiting reports whether a transaction waits in the pool.
func (n *utxoNetwork) isWaiting(hash string) bool {
	return slices.ContainsFunc(n.pool(), func(tx chain.PoolTx) bool { return tx.TxHash == hash })
}

// disturb has a payer replace or displace a transaction that waits, or the pool forget it, and returns the hash of
// what took its place.
func (n *utxoNetwork) disturb(op Op, hash string) (others []string) {
	switch {
	case !n.isWaiting(hash):
		return nil
	case op.Kind == DropPayment:
		n.Drop(hash)

		return nil
	case op.C%2 == 0:
		n.DoubleSpend(hash)

		return nil
	}

	return []string{n.Replace(hash)}
}

// forkWithout replaces the newest blocks by a branch on which a payer spent the inputs of the newest of some
// transactions to himself.
func (n *utxoNetwork) forkWithout(depth uint64, fate sim.OrphanFate, hashes []string) {
	var displaced []string

	base := n.tip().Height - depth

	for _, hash := range slices.Backward(hashes) {
		if n.harness.oracle.ledgers[n.slug()].isAbove(hash, base) {
			displaced = append(displaced, hash)
			break
		}
	}

	n.displaces = n.displaces || len(displaced) > 0
	n.Fork(sim.Fork{Depth: depth, Fate: fate}, displaced...)
}

// blockCoins are the outputs that a block made, and those that it spent.
type blockCoins struct {
	made  []chain.Transfer
	spent []chain.Outpoint
}

// coinsOf returns what a block made and spent.
func coinsOf(b chain.Block) (c blockCoins) {
	c.made = b.Transfers
	for _, spend := range b.Spent {
		c.spent = append(c.spent, spend.Outpoint)
	}

	return c
}

// coin is an output that is in the canonical chain.
type coin struct {
	owner  chain.Address
	amount chain.Amount
	// height is that of its block, ready that of the first block that may spend it, spent that of the one that did;
	// 0: none.
	height, ready, spent uint64
}

// addCoins takes the coins of a block into the ledger.
func (l *ledger) addCoins(at uint64, c blockCoins) {
	for _, t := range c.made {
		if l.ours[t.To] {
			l.coins[chain.Outpoint{TxHash: t.TxHash, Vout: t.Index}] = coin{
				owner:  t.To,
				amount: t.Amount,
				height: at,
				ready:  at + t.Locked,
			}
		}
	}

	for _, outpoint := range c.spent {
		if c, ours := l.coins[outpoint]; ours {
			c.spent = at
			l.coins[outpoint] = c
		}
	}
}

// dropCoins takes back what blocks from a height on made and spent.
func (l *ledger) dropCoins(from uint64) {
	for outpoint, c := range l.coins {
		switch {
		case c.height >= from:
			delete(l.coins, outpoint)
		case c.spent >= from:
			c.spent = 0
			l.coins[outpoint] = c
		}
	}
}

// spendable returns what the block after the one of a height may spend of an address.
func (l *ledger) spendable(owner chain.Address, height uint64) (sum chain.Amount) {
	for _, c := range l.coins {
		unspent := c.spent == 0 || c.spent > height
		if c.owner == owner && c.height <= height && c.ready <= height+1 && unspent {
			sum = sum.Add(c.amount)
		}
	}

	return sum
}

// checkSpendable compares the balances of a commit with what can be spent.
func (o *oracle) checkSpendable(c *commit) {
	for _, b := range c.balances {
		l := o.ledgers[b.Network]
		if !l.exact || !l.has(b.At) {
			continue
		}

		if can := l.spendable(b.Address, b.At.Height); can != b.OnChain {
			o.violate(
				ruleSpendable, "wallet %s has %s at block %d, and %s can be spent",
				b.Address, b.OnChain, b.At.Height, can,
			)
		}
	}
}

// isUnderItsCost reports whether an input of what a settlement holds costs more than half of that at any rate that was
// ever offered. Of more than fifty the smallest wait for the larger ones, which are held.
func (o *oracle) isUnderItsCost(s settlement.Settlement) bool {
	n, ok := o.ledgers[s.Network].network.(*utxoNetwork)

	return ok && s.Gross.Less(n.inputCost().Mul(2))
}

// inputVSize is what an input adds to a transaction, in virtual bytes, rounded up.
const inputVSize = 53

// inputCost returns what an input costs at the lowest rate that was ever offered, in base units.
func (n *utxoNetwork) inputCost() chain.Amount { return chain.Units(n.lowest * inputVSize / 1000) }

// isDisplaced reports whether a fork of a network displaced a payment that was in a block.
func (o *oracle) isDisplaced(network string) bool {
	n, ok := o.ledgers[network].network.(*utxoNetwork)

	return ok && n.displaces
}

// checkInputShares checks the shares in the fees of a release that spent coins: each input bears an equal part, and
// none was spent that costs more than half of what it holds, at the lowest rate that was ever offered.
func (o *oracle) checkInputShares(id string, all []settlement.Settlement, fees chain.Amount) {
	part := fees.Share(chain.Units(1), chain.Units(uint64(len(all))))
	spare := chain.Units(uint64(len(all)))

	for _, s := range all {
		if o.isUnderItsCost(s) {
			o.violate(
				ruleFair,
				"sweep %s spends %s of settlement %s, which costs more than half",
				id,
				s.Gross,
				s.ID,
			)

			return
		}

		if s.Gross.SubFloor(s.FeeNative).Less(part.Add(spare)) {
			return // the fee has risen above what one of them holds
		}
	}

	for _, s := range all {
		if part.Add(spare).Less(s.NetworkFees) || s.NetworkFees.Add(spare).Less(part) {
			o.violate(ruleShares, "settlement %s bears %s of %s that sweep %s cost for %d inputs",
				s.ID, s.NetworkFees, fees, id, len(all))
		}
	}
}

// awaitingOutputs returns the wallets of payouts that wait for outputs which a fork took away, by payout: whatever may
// pay them spends one that the chain does not have. Nothing can displace them, and they may be paid after all.
func (w *harness) awaitingOutputs() map[string]chain.Address {
	waiting := map[string]chain.Address{}

	for id, p := range w.oracle.records.payouts {
		if p.Status != payout.Processing {
			continue
		}

		all, err := w.store.TransactionsOf(w.ctx, id)
		must(err)

		for _, t := range all {
			if t.BatchedBy != "" {
				t, err = w.store.Transaction(w.ctx, t.BatchedBy)
				must(err)
			}

			if t.Kind == wallet.Payout && w.oracle.lacksOutputs(t) {
				waiting[id] = t.Order.From.Address
			}
		}
	}

	return waiting
}

// checkNamed checks that the health report of a process names the wallets whose payouts wait for outputs.
func (w *harness) checkNamed() {
	for id, address := range w.awaitingOutputs() {
		named := slices.ContainsFunc(w.processes, func(p *process) bool {
			report, err := p.alive().Health(w.ctx)

			return err == nil && slices.ContainsFunc(report.Wallets, func(of health.Wallet) bool {
				return of.Address == string(address) && !of.StuckSince.IsZero()
			})
		})

		if !named {
			w.oracle.violate(
				ruleRest,
				"payout %s waits for outputs that a fork took away, and no report names it",
				id,
			)
		}
	}
}

// lacksOutputs reports whether each of the bytes of a transaction spends an output that the chain does not have.
func (o *oracle) lacksOutputs(t wallet.Transaction) bool {
	l := o.ledgers[t.Network]

	return len(t.Attempts) > 0 && !slices.ContainsFunc(t.Attempts, func(a wallet.Attempt) bool {
		return !slices.ContainsFunc(a.Signed.Inputs, func(in chain.Outpoint) bool {
			_, there := l.coins[in]
			return !there
		})
	})
}

// holds reports whether one of the payouts is of a wallet.
func holds(waiting map[string]chain.Address, address chain.Address) bool {
	return slices.Contains(slices.Collect(maps.Values(waiting)), address)
}
