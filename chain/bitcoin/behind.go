package bitcoin

import (
	"context"
	"sync"
	"time"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

const (
	// minLead is the number of blocks on top of a node's tip that show it to be behind. One is on its way.
	minLead = 2
	// compareTimeout bounds the time that the other nodes have for their headers.
	compareTimeout = 5 * time.Second
	// skipFor is how long a node that gave no answer is not compared with the others.
	skipFor = time.Minute
)

// readState returns whether a node is pruned, from an answer of getblockchaininfo. One that syncs is a
// *failover.Failure (node_syncing).
func (e *endpoint) readState(info *rpcCall) (pruned bool, err error) {
	var state struct {
		Syncing bool `json:"initialblockdownload"`
		Pruned  bool `json:"pruned"`
	}
	if err := info.decode(e, &state); err != nil {
		return false, err
	}

	if state.Syncing {
		return false, e.syncing("it has not caught up with the network yet")
	}

	return state.Pruned, nil
}

// checkBehind returns a *failover.Failure (node_behind) when another node has minLead blocks on top of the
// node's tip. Their headers are verified: they link to the tip, meet their targets, and these are what the
// tip's chain asks for. What another node says without that work proves nothing.
func (d *driver) checkBehind(ctx context.Context, node *endpoint, tip headerJSON) error {
	if len(d.nodes.Nodes) == 1 {
		return nil
	}

	compared, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()

	var (
		wait  sync.WaitGroup
		ahead = make([]bool, len(d.nodes.Nodes))
	)

	for i, other := range d.nodes.Nodes {
		if other == node || time.Now().UnixNano() < other.skipUntil.Load() {
			continue
		}

		wait.Go(func() {
			var err error
			if ahead[i], err = d.isAhead(compared, other, tip); err != nil {
				other.skipUntil.Store(time.Now().Add(skipFor).UnixNano())
			}
		})
	}

	wait.Wait()

	for i, other := range d.nodes.Nodes {
		if ahead[i] {
			return &failover.Failure{
				Host: node.Host,
				Code: "node_behind",
				What: "it is behind: node " + other.Host + " has blocks on top of its newest one",
			}
		}
	}

	return nil
}

// isAhead reports whether a node proves minLead blocks on top of a tip.
func (d *driver) isAhead(ctx context.Context, node *endpoint, tip headerJSON) (bool, error) {
	if err := d.nodes.Check(ctx, node); err != nil {
		return false, err
	}

	height := uint64(tip.Height)

	hashes := make([]*rpcCall, minLead)
	for i := range hashes {
		hashes[i] = newCall("getblockhash", height+1+uint64(i))
	}

	if err := node.batchCall(ctx, hashes...); err != nil {
		return false, err
	}

	calls := []*rpcCall{newCall("getblockheader", tip.Hash, false)}

	for _, call := range hashes {
		var hash string
		if call.decode(node, &hash) != nil {
			return false, nil // its chain ends below
		}

		calls = append(calls, newCall("getblockheader", hash, false))
	}

	if err := node.batchCall(ctx, calls...); err != nil {
		return false, err
	}

	var parent *wire.BlockHeader

	for i, call := range calls {
		var text string
		if call.decode(node, &text) != nil {
			return false, nil // it does not know the tip, or its chain moved
		}

		header, err := node.decodeHeader(call.args[0].(string), text)
		if err != nil {
			return false, err
		}

		if i > 0 {
			first, err := d.periodHeader(ctx, node, height+uint64(i))
			if err != nil || !d.extends(header, parent, first, height+uint64(i)) {
				return false, err
			}
		}

		parent = header
	}

	return true, nil
}

// extends reports whether a header is one on top of its parent, with the work that their chain asks for.
func (d *driver) extends(header, parent, first *wire.BlockHeader, height uint64) bool {
	return header.PrevBlock == parent.BlockHash() && meetsTarget(d.params, header) &&
		targetProblem(d.params, height, header, parent, first) == ""
}
