package bitcoin

import (
	"context"
	"errors"
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

	pool  poolCache
	shown shownRates

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

// Check verifies that every node serves the network, is synced and follows one chain. It errors:
//   - fault.Stopped (chain_id_mismatch): a node has another genesis or pinned block, or headers in another format
//   - fault.Unavailable: a node gives no answer, refuses the credentials (node_unauthorized), is syncing
//     (node_syncing) or follows a chain with less work than another node's (node_other_chain)
func (d *driver) Check(ctx context.Context) error {
	tips := make([]headerJSON, len(d.nodes.Nodes))

	for i, node := range d.nodes.Nodes {
		err := d.verify(ctx, node)
		if err == nil {
			tips[i], err = node.tip(ctx)
		}

		if node.NoteAnswer(ctx, err); err != nil {
			return failover.Fault(d.network.Slug, err)
		}
	}

	for i, node := range d.nodes.Nodes {
		err := d.checkChain(ctx, node, tips[i])
		if err == nil {
			err = node.checkFork(ctx)
		}

		if failure, ok := errors.AsType[*failover.Failure](err); ok && failure.Code == otherChain {
			return failover.Fault(d.network.Slug, err)
		}
	}

	return nil
}

// verify checks that the endpoint has the network's genesis block and the pinned blocks and is synced. It
// stores the node's version, its warnings and whether it is pruned.
func (d *driver) verify(ctx context.Context, node *endpoint) error {
	if err := d.readIdentity(ctx, node); err != nil {
		return err
	}

	node.suspect.Store(false)

	return nil
}

func (d *driver) readIdentity(ctx context.Context, node *endpoint) error {
	genesis, info, version := newCall(
		"getblockhash",
		0,
	), newCall(
		"getblockchaininfo",
	), newCall(
		"getnetworkinfo",
	)

	calls, pins := []*rpcCall{genesis, info, version}, d.pinnedBlocks()
	for _, pin := range pins {
		calls = append(calls, newCall("getblockhash", pin.height))
	}

	if err := node.batchCall(ctx, calls...); err != nil {
		return err
	}

	var software struct {
		Name string `json:"subversion"`
	}
	if version.decode(node, &software) == nil { // not every node answers, and nothing depends on it
		node.NoteVersion(node.Clean(software.Name))
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

	for i, pin := range pins {
		if err := pin.check(node, calls[len(calls)-len(pins)+i]); err != nil {
			return err
		}
	}

	node.pruned.Store(pruned)

	return nil
}

// ask runs f against one node after another until one answers, Config.Attempts times. A node that did not
// answer, or was syncing, is verified anew before it is asked again.
func (d *driver) ask(ctx context.Context, f func(context.Context, *endpoint) error) error {
	return d.nodes.Ask(ctx, d.config.Attempts, 0, d.verified(f))
}

// verified returns f preceded by a check of the node, if the node was not reached before or follows another
// chain. See endpoint.suspect and endpoint.fork.
func (d *driver) verified(
	f func(context.Context, *endpoint) error,
) func(ctx context.Context, node *endpoint) error {
	return func(ctx context.Context, node *endpoint) error {
		if node.suspect.Load() {
			if err := d.verify(ctx, node); err != nil {
				return err
			}
		}

		if err := node.checkFork(ctx); err != nil {
			return err
		}

		return f(ctx, node)
	}
}

// verifiedBeside is verified for failover.Set.AskBeside; one answer is enough.
func (d *driver) verifiedBeside(
	f func(context.Context, *endpoint) error,
) func(ctx context.Context, node *endpoint) (enough bool, err error) {
	return func(ctx context.Context, node *endpoint) (bool, error) {
		err := d.verified(f)(ctx, node)
		return err == nil, err
	}
}
