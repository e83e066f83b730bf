package simulation

import (
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// network is a network of any family as payers, faults and the oracle use it.
type network interface {
	slug() string
	// feeAddress receives the platform fee.
	feeAddress() chain.Address
	// newNode returns a node of the network for one process.
	newNode(p *process) *node
	// newAddress returns an address that belongs to nobody here.
	newAddress() chain.Address
	// fund gives an address money that no transaction shows.
	fund(to chain.Address, symbol string, amount chain.Amount)
	// pay has a new payer send a payment, and returns the transaction's hash.
	pay(to chain.Address, symbol string, amount chain.Amount) string
	// payMany has a new payer make several payments by one transaction, and returns its hash. Those after the first are
	// of the token, where the network has one.
	payMany(first chain.Output, others ...chain.Output) string
	// mine adds blocks from the pool.
	mine(n int)
	// fork replaces the newest blocks; fate says what becomes of their transactions.
	fork(depth uint64, fate sim.OrphanFate)
	// setFee multiplies the usual fee by permille / 1000.
	setFee(permille uint64)
	truth
}

// truth is what the oracle reads of a network: the canonical chain, by a node that does not lie.
type truth interface {
	tip() chain.Ref
	block(height uint64) truthBlock
	// balances returns what addresses hold after the block of a height.
	balances(height uint64, holdings []chain.Holding) []chain.Amount
	// assets are the ids of the enabled assets.
	assets() []chain.Asset
	// pool are the transactions that wait for a block.
	pool() []chain.PoolTx
}

// truthBlock is a canonical block.
type truthBlock struct {
	ref    chain.Ref
	parent string
	txs    []truthTx
	// exact is set where what a block shows is what arrived: no contract can say otherwise.
	exact bool
	// coins are what the block made and spent, where outputs are spent.
	coins blockCoins
}

// truthTx is a transaction in a block.
type truthTx struct {
	hash   string
	sender chain.Address
	failed bool
	fee    chain.Amount
	// shown are all its transfers, those that no block shows included.
	shown []chain.Transfer
}

// accountNetwork is a network whose senders have accounts with nonces.
type accountNetwork struct {
	*sim.Chain
	harness   *harness
	fees      chain.Address
	described chain.Network
	// insteadOf are the payments that a fork took and others replaced, by the hash of those.
	insteadOf map[string]string
	// highest is the highest base fee that was ever asked for, and rules are those of the fork of gas.
	highest uint64
	rules   sim.GasRules
}

func newAccountNetwork(w *harness, index int) *accountNetwork {
	described := sim.DefaultNetwork()
	if index > 0 {
		described.Slug = fmt.Sprintf("simnet-%d", index+1)
		described.CAIP2 = fmt.Sprintf("sim:%d", index+1)
	}

	if w.plan.Fast {
		described.BlockTime = fastBlocks
		described.EstimatedConfirmation = confirmations * fastBlocks
	}

	config := sim.Config{
		Network:    described,
		Clock:      w.clock.now,
		NoFinality: !w.plan.Finality,
		MaxOutputs: max(w.plan.Batch, 1),
		ValidFor:   w.plan.ValidFor,
		Seed:       w.plan.Seed,
		Nodes:      w.plan.Nodes,
		Unverified: w.plan.Unverified,

		CoinLogsFrom: w.plan.CoinLogsFrom,
		WholeSeconds: w.plan.Fast,
	}
	if w.plan.GasFork > 0 {
		config.GasForks = []sim.GasFork{{From: w.plan.GasFork, Rules: w.plan.GasRules}}
	}

	if w.plan.Finality {
		config.FinalDepth, config.SafeDepth = finalDepth, finalDepth/2
	}

	c := sim.New(config)

	return &accountNetwork{
		Chain:     c,
		harness:   w,
		fees:      c.NewAddress(),
		described: c.Network(),
		insteadOf: map[string]string{},
		highest:   sim.DefaultBaseFee,
		rules:     w.plan.GasRules,
	}
}

func (n *accountNetwork) slug() string              { return n.described.Slug }
func (n *accountNetwork) feeAddress() chain.Address { return n.fees }
func (n *accountNetwork) newAddress() chain.Address { return n.NewAddress() }
func (n *accountNetwork) mine(blocks int)           { n.Mine(blocks) }
func (n *accountNetwork) assets() []chain.Asset     { return n.described.Assets }

func (n *accountNetwork) newNode(p *process) *node {
	return &node{Chain: n.Chain, process: p, slug: n.slug()}
}

func (n *accountNetwork) fund(to chain.Address, symbol string, amount chain.Amount) {
	n.Fund(to, symbol, amount)
}

func (n *accountNetwork) pay(to chain.Address, symbol string, amount chain.Amount) string {
	return n.Pay(to, symbol, amount)
}

func (n *accountNetwork) payMany(first chain.Output, others ...chain.Output) string {
	token, _ := n.described.Asset("USDX")
	for i := range others {
		others[i].AssetID = token.ID
	}

	return n.PayMany(append([]chain.Output{first}, others...)...)
}

func (n *accountNetwork) fork(depth uint64, fate sim.OrphanFate) {
	n.Fork(sim.Fork{Depth: depth, Fate: fate})
}

func (n *accountNetwork) setFee(permille uint64) {
	base := sim.DefaultBaseFee * permille / 1000
	n.highest = max(n.highest, base)
	n.SetFee(base, sim.DefaultPriority)
}

func (n *accountNetwork) tip() chain.Ref {
	head, err := n.Head(n.harness.ctx)
	must(err)

	return head.Tip
}

func (n *accountNetwork) pool() []chain.PoolTx {
	waiting, err := n.Pool(n.harness.ctx)
	must(err)

	return waiting
}

func (n *accountNetwork) block(height uint64) truthBlock {
	blocks, err := n.Blocks(n.harness.ctx, height, height)
	must(err)

	b := truthBlock{ref: blocks[0].Ref, parent: blocks[0].Parent}

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

	return b
}

func (n *accountNetwork) balances(height uint64, holdings []chain.Holding) []chain.Amount {
	ref, err := n.RefAt(n.harness.ctx, height)
	must(err)

	amounts, err := n.Balances(n.harness.ctx, ref, holdings)
	must(err)

	return amounts
}

// must panics on an error that only a fault of the simulation can cause.
func must(err error) {
	if err != nil {
		panic("simulation: " + err.Error())
	}
}

// confirmations is how many blocks every network asks for.
const confirmations = 3

// fastBlocks is the time between the blocks of a plan whose blocks are fast.
const fastBlocks = 200 * time.Millisecond

// mostFastBlocks is how many blocks are mined at a time there, however long the time that passed.
const mostFastBlocks = 25

// finalDepth is how many blocks the final one is below the tip, on networks with finality.
const finalDepth = 8
