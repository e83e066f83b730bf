package bitcoin

import (
	"context"
	"time"

	"github.com/btcsuite/btcd/wire/v2"
)

const (
	// minLead is the number of blocks on top of a node's tip that prove it to be behind. A single one may
	// still be on its way.
	minLead = 2
	// compareTimeout bounds the time that the other nodes have for their headers.
	compareTimeout = 5 * time.Second
	// skipFor is the time for which a node that gave no answer is not compared with the others.
	skipFor = time.Minute
)

// readState reads from an answer of getblockchaininfo whether a node is pruned, and stores its warnings. A
// node that is syncing is a *failover.Failure (node_syncing).
func (e *endpoint) readState(info *rpcCall) (pruned bool, err error) {
	var state struct {
		Syncing  bool         `json:"initialblockdownload"`
		Pruned   bool         `json:"pruned"`
		Warnings nodeWarnings `json:"warnings"`
	}
	if err := info.decode(e, &state); err != nil {
		return false, err
	}

	e.NoteWarnings(state.Warnings.shown(e))

	if state.Syncing {
		return false, e.syncing("it has not caught up with the network yet")
	}

	return state.Pruned, nil
}

// isAhead reports whether a node proves minLead blocks on top of a tip.
func (d *driver) isAhead(ctx context.Context, node *endpoint, tip headerJSON) (bool, error) {
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
			return false, nil // the other node's chain ends below
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
			return false, nil // the other node does not know the tip, or its chain changed
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

// extends reports whether a header follows its parent, with the work that their chain requires.
func (d *driver) extends(header, parent, first *wire.BlockHeader, height uint64) bool {
	return header.PrevBlock == parent.BlockHash() && meetsTarget(d.params, header) &&
		targetProblem(d.params, height, header, parent, first) == ""
}
