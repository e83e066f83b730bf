package simulation

import (
	"cmp"
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// utxoNetwork is a network whose transactions spend outputs.
type utxoNetwork struct {
	*sim.UTXO
	harness *harness
	fees    chain.Address
	// owners are the receivers of all outputs that were ever in a block.
	owners map[chain.Outpoint]chain.Address
	// lowest is the lowest rate that was ever offered, in base units per 1000 vB; minerFloor what miners leave out.
	lowest, minerFloor uint64
	// displaces is set once a fork displaced a payment that was in a block: what we had built on it is gone too.
	displaces bool
}

func newUTXONetwork(w *harness) *utxoNetwork {
	n := &utxoNetwork{harness: w, owners: map[chain.Outpoint]chain.Address{}, lowest: sim.DefaultFeeRate}
	n.UTXO = sim.NewUTXO(sim.UTXOConfig{Clock: w.clock.now, Seed: w.plan.Seed, Intercept: n.intercept})
	n.fees = n.NewAddress()

	return n
}

// intercept applies the faults of the node of the process that runs; the oracle gets the truth.
func (n *utxoNetwork) intercept(_ context.Context, method sim.Method) error {
	p := n.harness.running
	if p == nil {
		n.Lag(0)

		return nil
	}

	for _, node := range p.nodes {
		if node.slug != n.slug() {
			continue
		}

		if _, err := node.call(method); err != nil {
			return err
		}

		n.Lag(node.lag)

		if method == sim.MethodBroadcast && node.lost > 0 {
			node.lost--

			n.LoseNextResponses(1)
		}
	}

	return nil
}

func (n *utxoNetwork) slug() string              { return n.Network().Slug }
func (n *utxoNetwork) feeAddress() chain.Address { return n.fees }
func (n *utxoNetwork) newAddress() chain.Address { return n.NewAddress() }
func (n *utxoNetwork) mine(blocks int)           { n.Mine(blocks) }
func (n *utxoNetwork) assets() []chain.Asset     { return n.Network().Assets }

func (n *utxoNetwork) newNode(p *process) *node {
	return &node{other: utxoDriver{n.UTXO, n}, process: p, slug: n.slug()}
}

// utxoDriver is the driver of one process.
type utxoDriver struct {
	*sim.UTXO
	network *utxoNetwork
}

// Broadcast gives the node a transaction.
func (d utxoDriver) Broadcast(ctx context.Context, signed chain.Signed) error {
	d.network.harness.oracle.checkStored(d.network.slug(), signed)

	return d.UTXO.Broadcast(ctx, signed)
}

func (n *utxoNetwork) fund(to chain.Address, _ string, amount chain.Amount) { n.Fund(to, amount) }

func (n *utxoNetwork) pay(to chain.Address, _ string, amount chain.Amount) string {
	return n.Pay(to, amount)
}

func (n *utxoNetwork) payMany(first chain.Output, others ...chain.Output) string {
	for i := range others {
		others[i].AssetID = first.AssetID
	}

	hash, err := n.Send(sim.UTXOPayment{Outputs: append([]chain.Output{first}, others...)})
	must(err)

	return hash
}

func (n *utxoNetwork) fork(depth uint64, fate sim.OrphanFate) {
	n.Fork(sim.Fork{Depth: depth, Fate: fate})
}

func (n *utxoNetwork) setFee(permille uint64) {
	rate := sim.DefaultFeeRate * permille / 1000
	n.lowest = min(n.lowest, rate)
	n.SetFeeRate(rate)
}

// holdBack has miners leave out what pays less than a rate, in base units per 1000 vB.
func (n *utxoNetwork) holdBack(rate uint64) {
	n.minerFloor = rate
	n.SetMinerFloor(rate)
}

func (n *utxoNetwork) tip() (ref chain.Ref) {
	n.harness.aside(func() {
		head, err := n.Head(n.harness.ctx)
		must(err)

		ref = head.Tip
	})

	return ref
}

// pool returns the waiting transactions by arrival, with who sent them.
func (n *utxoNetwork) pool() (waiting []chain.PoolTx) {
	n.harness.aside(func() {
		var err error

		waiting, err = n.Pool(n.harness.ctx)
		must(err)
	})

	made := map[chain.Outpoint]chain.Address{}

	for _, tx := range waiting {
		var sender chain.Address

		for _, spend := range tx.Spent {
			sender = cmp.Or(sender, n.owners[spend.Outpoint], made[spend.Outpoint])
		}

		for i, t := range tx.Transfers {
			tx.Transfers[i].From = sender
			made[chain.Outpoint{TxHash: tx.TxHash, Vout: t.Index}] = t.To
		}
	}

	return waiting
}

func (n *utxoNetwork) block(height uint64) (b truthBlock) {
	n.harness.aside(func() {
		blocks, err := n.Blocks(n.harness.ctx, height, height)
		must(err)

		b = truthBlock{ref: blocks[0].Ref, parent: blocks[0].Parent, exact: true}
		b.coins = coinsOf(blocks[0])
		senders := map[string]chain.Address{}

		for _, spend := range blocks[0].Spent {
			if owner, known := n.owners[spend.Outpoint]; known && senders[spend.By] == "" {
				senders[spend.By] = owner
			}
		}

		for _, t := range blocks[0].Transfers {
			n.owners[chain.Outpoint{TxHash: t.TxHash, Vout: t.Index}] = t.To
			t.From = senders[t.TxHash]

			if last := len(b.txs) - 1; last >= 0 && b.txs[last].hash == t.TxHash {
				b.txs[last].shown = append(b.txs[last].shown, t)
				continue
			}

			b.txs = append(b.txs, truthTx{hash: t.TxHash, sender: t.From, shown: []chain.Transfer{t}})
		}
	})

	return b
}

// balances is not asked of a network whose blocks are exact.
func (n *utxoNetwork) balances(uint64, []chain.Holding) []chain.Amount {
	panic("simulation: the blocks of a network of outputs are exact")
}
