package tron

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Driver serves one Tron network. It is safe for concurrent use.
type Driver struct {
	network   chain.Network
	genesis   string // the last 4 bytes of the genesis block's id, in hex
	native    chain.Asset
	tokens    map[address]chain.Asset
	nodes     *failover.Set[*endpoint]
	attempts  int
	maxBlocks int
	validity  time.Duration
	now       func() time.Time

	lastTimestamp   atomic.Int64 // the timestamp that was given to a transaction last, in milliseconds
	blocks *blockCache
}

var _ interface {
	chain.Driver
	chain.BlockScanner
	chain.Finder
	chain.Balancer
	chain.Deriver
	chain.URIBuilder
	chain.FeeEstimator
	chain.Sender
	chain.Sweeper
	chain.Checker
} = (*Driver)(nil)

// Network describes the network, its assets complete with ids. The caller may keep and change it.
func (d *Driver) Network() chain.Network {
	network := d.network
	network.Assets, network.Tiers = slices.Clone(network.Assets), slices.Clone(network.Tiers)

	return network
}

// Check asks every node for its genesis block and every token for its decimals. Another genesis
// block is fault.Stopped with code chain_id_mismatch, a token that is not there or counts
// differently is fault.Stopped with code token_mismatch, a node without an answer is
// fault.Unavailable.
func (d *Driver) Check(ctx context.Context) error {
	for _, e := range d.nodes.Nodes {
		if err := d.nodes.Vet(ctx, e); err != nil {
			return failover.Fault(d.network.Slug, err)
		}

		if _, err := e.latest(ctx, solidified); err != nil { // the second interface may be at another port
			return failover.Fault(d.network.Slug, err)
		}

		for contract, asset := range d.tokens {
			if err := d.checkToken(ctx, e, contract, asset); err != nil {
				return failover.Fault(d.network.Slug, err)
			}
		}
	}

	return nil
}

// timestamp dates a transaction in milliseconds, never twice the same within this process: equal
// payments made at the same time are then different transactions.
func (d *Driver) timestamp() int64 {
	for {
		last := d.lastTimestamp.Load()

		next := max(d.now().UnixMilli(), last+1)
		if d.lastTimestamp.CompareAndSwap(last, next) {
			return next
		}
	}
}
