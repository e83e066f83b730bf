package tron

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// driver serves one Tron network. It is safe for concurrent use.
type driver struct {
	network chain.Network
	genesis string // the last 4 bytes of the genesis block's id, in hex
	native  chain.Asset
	tokens  map[address]chain.Asset
	// permissions are the ids of the permissions that sign, by account; 0 is the owner permission.
	permissions map[address]int64
	nodes       *failover.Set[*endpoint]
	attempts    int
	maxBlocks   int
	validity    time.Duration
	delegates   bool // releases of tokens use the energy of the master wallet's stake
	provider    EnergyProvider
	now         func() time.Time

	maxEnergyPrice, maxFeeLimit uint64 // sun per unit of energy; sun

	lastTimestamp atomic.Int64             // of the last transaction built, in milliseconds since 1970
	lastHead      atomic.Pointer[seenHead] // nil before the first
}

var _ interface {
	chain.Driver
	chain.BlockScanner
	chain.Agreed
	chain.Finder
	chain.Balancer
	chain.Deriver
	chain.URIBuilder
	chain.FeeEstimator
	chain.Sender
	chain.Sweeper
	chain.Checker
} = (*driver)(nil)

// Network returns the network with the ids of its assets. The caller may keep and change it.
func (d *driver) Network() chain.Network {
	network := d.network
	network.Assets, network.Tiers = slices.Clone(network.Assets), slices.Clone(network.Tiers)

	return network
}

// Check verifies that every node serves the network and that every token has its decimals. It errors:
//   - fault.Stopped (chain_id_mismatch): a node has another genesis block
//   - fault.Stopped (token_mismatch): a token does not exist or has other decimals
//   - fault.Unavailable: a node gives no answer
func (d *driver) Check(ctx context.Context) error {
	for _, node := range d.nodes.Nodes {
		if err := d.nodes.Check(ctx, node); err != nil {
			return failover.Fault(d.network.Slug, err)
		}

		if _, err := node.latest(ctx, solidified); err != nil { // it may have another URL
			return failover.Fault(d.network.Slug, err)
		}

		for contract, asset := range d.tokens {
			if err := d.checkToken(ctx, node, contract, asset); err != nil {
				return failover.Fault(d.network.Slug, err)
			}
		}
	}

	return nil
}

// timestamp returns the time of a new transaction in milliseconds since 1970, each time another one: equal
// payments of the same time are then different transactions.
func (d *driver) timestamp() int64 {
	for {
		last := d.lastTimestamp.Load()

		next := max(d.now().UnixMilli(), last+1)
		if d.lastTimestamp.CompareAndSwap(last, next) {
			return next
		}
	}
}

// verify checks that the endpoint has the network's genesis block.
func (d *driver) verify(ctx context.Context, node *endpoint) error {
	var genesis blockJSON

	found, err := node.post(ctx, full, "getblockbynum", numRequest{0}, &genesis)
	if err != nil {
		return err
	}

	if !found || !isLowerHex(genesis.BlockID, 64) {
		return node.Garbled("getblockbynum: it does not say what its genesis block is")
	}

	if got := genesis.BlockID[56:]; got != d.genesis {
		return &failover.Mismatch{
			Host:  node.Host,
			Shows: "serves the network tron:0x" + got,
			Want:  "tron:0x" + d.genesis,
		}
	}

	return nil
}

// ask runs f against one node after another until one answers, Config.Attempts times. Nodes below the height
// minHeight are not asked.
func (d *driver) ask(ctx context.Context, minHeight uint64, f func(context.Context, *endpoint) error) error {
	return d.nodes.Ask(ctx, d.attempts, minHeight, f)
}
