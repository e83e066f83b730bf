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

// Driver serves one Bitcoin network. It is safe for concurrent use.
type Driver struct {
	network chain.Network
	native  chain.Asset
	params  *chaincfg.Params
	config  Config
	nodes   *failover.Set[*endpoint]
	log     *slog.Logger

	pool poolCache

	mu     sync.Mutex
	searches map[string]*spenderSearch // by hash of a transaction of ours
}

var _ interface {
	chain.Driver
	chain.BlockScanner
	chain.Mempool
	chain.Finder
	chain.CoinReader
	chain.Deriver
	chain.URIBuilder
	chain.FeeEstimator
	chain.Sender
	chain.Batcher
	chain.Sweeper
	chain.Lifter
	chain.Checker
} = (*Driver)(nil)

// Network describes the network, its assets complete with ids. The caller may keep and change it.
func (d *Driver) Network() chain.Network {
	network := d.network
	network.Assets, network.Tiers = slices.Clone(network.Assets), slices.Clone(network.Tiers)

	return network
}

// Check asks every node for its genesis block and whether it has caught up with the network. Another
// genesis block is fault.Stopped with code chain_id_mismatch; a node without an answer, with other
// credentials (node_unauthorized) or still syncing (node_syncing) is fault.Unavailable.
func (d *Driver) Check(ctx context.Context) error {
	for _, e := range d.nodes.Nodes {
		if err := d.verify(ctx, e); err != nil {
			return failover.Fault(d.network.Slug, err)
		}
	}

	return nil
}

// PaymentURI returns a BIP-21 URI: bitcoin:<address>?amount=<whole bitcoins>.
func (d *Driver) PaymentURI(to chain.Address, _ chain.Asset, amount chain.Amount) string {
	return "bitcoin:" + string(to) + "?amount=" + amount.Decimal(decimals).String()
}
