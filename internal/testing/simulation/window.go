package simulation

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// windowNetwork is a network of Solana's family: transactions have no sequence, run out, or use a nonce account of
// their master wallet.
type windowNetwork struct {
	*sim.Windows
	harness *harness
	fees    chain.Address
}

// windowBlocks is how many blocks a transaction without a durable nonce waits for its own.
const windowBlocks = 60

func newWindowNetwork(w *harness) *windowNetwork {
	described := sim.DefaultNetwork()
	described.Slug, described.CAIP2 = "simwindows", "sim:windows"

	n := &windowNetwork{harness: w}
	n.Windows = sim.NewWindows(sim.WindowsConfig{
		Network:       described,
		Clock:         w.clock.now,
		FinalDepth:    finalDepth,
		ValidBlocks:   windowBlocks,
		ValidFor:      w.plan.ValidFor,
		NonceAccounts: w.plan.NonceAccounts,
		Intercept:     n.intercept,
		Seed:          w.plan.Seed,
	})
	n.fees = n.NewAddress()

	return n
}

// intercept applies the faults of the node of the process that runs; the oracle gets the truth.
func (n *windowNetwork) intercept(_ context.Context, method sim.Method) error {
	p := n.harness.running
	if p == nil {
		n.Lag(0)

		return nil
	}

	node := n.nodeOf(p)
	if _, err := node.call(method); err != nil {
		return err
	}

	n.Lag(node.lag)

	if method == sim.MethodBroadcast && node.lost > 0 {
		node.lost--

		n.LoseNextResponses(1)
	}

	return nil
}

// nodeOf returns the node of the network that a process reads.
func (n *windowNetwork) nodeOf(p *process) *node {
	at := slices.IndexFunc(p.nodes, func(node *node) bool { return node.slug == n.slug() })

	return p.nodes[at]
}

// windowDriver is the driver of one process.
type windowDriver struct {
	*sim.Windows
	network *windowNetwork
	process *process
}

// NonceAccounts returns those of master wallets: deposit addresses have none. Of two merchants one may have none.
func (d windowDriver) NonceAccounts(address chain.Address) []chain.Address {
	for i, m := range d.network.harness.merchants {
		if slices.Contains(m.wallets, address) && (i == 0 || d.network.harness.plan.Seed%2 == 0) {
			return d.Windows.NonceAccounts(address)
		}
	}

	return nil
}

// Broadcast gives the node a transaction.
func (d windowDriver) Broadcast(ctx context.Context, signed chain.Signed) error {
	d.network.harness.oracle.checkStored(d.network.slug(), signed)

	return d.Windows.Broadcast(ctx, signed)
}

// Status asks the node for a transaction of ours.
func (d windowDriver) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	status, err := d.Windows.Status(ctx, signed)
	if err != nil || status.State != chain.TxIncluded {
		return status, err
	}

	node := d.network.nodeOf(d.process)

	if node.denied {
		// What a driver concludes that does not find it: another one used the nonce, or it ran out.
		other := signed
		other.TxHash = "denied"

		d.network.harness.aside(func() { status, err = d.Windows.Status(ctx, other) })

		return status, err
	}

	if node.silent {
		status.Transfers = nil
	}

	return status, nil
}

func (n *windowNetwork) slug() string              { return "simwindows" }
func (n *windowNetwork) feeAddress() chain.Address { return n.fees }
func (n *windowNetwork) newAddress() chain.Address { return n.NewAddress() }
func (n *windowNetwork) mine(blocks int)           { n.Mine(blocks) }
func (n *windowNetwork) assets() []chain.Asset     { return n.Network().Assets }
func (n *windowNetwork) pool() []chain.PoolTx      { return n.Waiting() }

func (n *windowNetwork) newNode(p *process) *node {
	return &node{other: windowDriver{n.Windows, n, p}, process: p, slug: n.slug()}
}

func (n *windowNetwork) fund(to chain.Address, symbol string, amount chain.Amount) {
	n.Fund(to, symbol, amount)
}

func (n *windowNetwork) pay(to chain.Address, symbol string, amount chain.Amount) string {
	return n.Pay(to, symbol, amount)
}

func (n *windowNetwork) payMany(first chain.Output, _ ...chain.Output) string {
	asset, _ := n.Network().AssetByID(first.AssetID)

	return n.pay(first.To, asset.Symbol, first.Amount)
}

func (n *windowNetwork) fork(depth uint64, fate sim.OrphanFate) {
	n.Fork(sim.Fork{Depth: depth, Fate: fate})
}

func (n *windowNetwork) setFee(permille uint64) { n.SetPrice(sim.DefaultBaseFee * permille / 1000) }

func (n *windowNetwork) tip() (ref chain.Ref) {
	n.harness.aside(func() {
		head, err := n.Head(n.harness.ctx)
		must(err)

		ref = head.Tip
	})

	return ref
}

func (n *windowNetwork) block(height uint64) (b truthBlock) {
	n.harness.aside(func() {
		blocks, err := n.Blocks(n.harness.ctx, height, height)
		must(err)

		b = truthBlock{ref: blocks[0].Ref, parent: blocks[0].Parent}

		for _, spend := range blocks[0].Spent {
			found, err := n.Transaction(n.harness.ctx, spend.By)
			must(err)

			status, err := n.Status(n.harness.ctx, chain.Signed{TxHash: spend.By})
			must(err)

			b.txs = append(b.txs, truthTx{
				hash:   spend.By,
				sender: spend.Sender,
				failed: found.Failed,
				fee:    status.Fee,
				shown:  found.Transfers,
			})
		}
	})

	return b
}

func (n *windowNetwork) balances(height uint64, holdings []chain.Holding) (amounts []chain.Amount) {
	n.harness.aside(func() {
		ref, err := n.RefAt(n.harness.ctx, height)
		must(err)

		amounts, err = n.Balances(n.harness.ctx, ref, holdings)
		must(err)
	})

	return amounts
}

// closeNonces has the nonce accounts of all master wallets be unusable, or usable again.
func (w *harness) closeNonces(closed bool) {
	for _, n := range w.networks {
		windows, ok := n.(*windowNetwork)
		if !ok {
			continue
		}

		for _, m := range w.merchants {
			for _, wallet := range m.wallets {
				windows.CloseNonces(wallet, closed)
			}
		}
	}
}
