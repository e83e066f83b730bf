package bitcoin

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/btcsuite/btcd/chaincfg/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// driver serves one Bitcoin network. It is safe for concurrent use.
type driver struct {
	network chain.Network
	native  chain.Asset
	params  *chaincfg.Params
	config  Config
	nodes   *failover.Set[*endpoint]
	log     *slog.Logger

	pool poolCache

	mu       sync.Mutex
	searches map[string]*inclusionSearch // by hash of our transaction
}

var _ interface {
	chain.Driver
	chain.BlockScanner
	chain.Agreed
	chain.Mempool
	chain.Finder
	chain.CoinReader
	chain.Deriver
	chain.URIBuilder
	chain.FeeEstimator
	chain.FeeChecker
	chain.InputPricer
	chain.Sender
	chain.Batcher
	chain.Sweeper
	chain.Bumper
	chain.Checker
} = (*driver)(nil)

// Network returns the network with the ids of its assets. The caller may keep and change it.
func (d *driver) Network() chain.Network {
	network := d.network
	network.Assets, network.Tiers = slices.Clone(network.Assets), slices.Clone(network.Tiers)

	return network
}

// Check verifies that every node serves the network and is synced. It errors:
//   - fault.Stopped (chain_id_mismatch): a node has another genesis block
//   - fault.Unavailable: a node gives no answer, refuses the credentials (node_unauthorized) or is syncing
//     (node_syncing)
func (d *driver) Check(ctx context.Context) error {
	for _, node := range d.nodes.Nodes {
		if err := d.verify(ctx, node); err != nil {
			return failover.Fault(d.network.Slug, err)
		}
	}

	return nil
}

// verify checks that the endpoint has the network's genesis block and is synced, and notes whether it is
// pruned.
func (d *driver) verify(ctx context.Context, node *endpoint) error {
	genesis, info := newCall("getblockhash", 0), newCall("getblockchaininfo")
	if err := node.batchCall(ctx, genesis, info); err != nil {
		return err
	}

	var hash string
	if err := genesis.decode(node, &hash); err != nil {
		return err
	}

	if want := d.params.GenesisHash.String(); hash != want {
		return &failover.Mismatch{Host: node.Host, Shows: "has genesis block " + node.Clean(hash), Want: want}
	}

	pruned, err := node.readState(info)
	if err != nil {
		return err
	}

	node.pruned.Store(pruned)
	node.suspect.Store(false)

	return nil
}

// ask runs f against one node after another until one answers, Config.Attempts times. A node that was not
// there, or synced, is verified anew before it is asked again.
func (d *driver) ask(ctx context.Context, f func(context.Context, *endpoint) error) error {
	return d.nodes.Ask(ctx, d.config.Attempts, 0, d.verified(f))
}

// verified returns f after a check of a node that was not reached before; see endpoint.suspect.
func (d *driver) verified(
	f func(context.Context, *endpoint) error,
) func(ctx context.Context, node *endpoint) error {
	return func(ctx context.Context, node *endpoint) error {
		if node.suspect.Load() {
			if err := d.verify(ctx, node); err != nil {
				return err
			}
		}

		return f(ctx, node)
	}
}
