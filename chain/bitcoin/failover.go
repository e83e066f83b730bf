package bitcoin

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// The JSON-RPC codes that are acted on. Source: Bitcoin Core, src/rpc/protocol.h.
const (
	codeMisc          = -1  // such as: the block is pruned
	codeNotFound      = -5  // no such transaction or block
	codeOutOfRange    = -8  // no such height
	codeUndecodable   = -22 // bytes that are no transaction
	codeRefused       = -25 // such as: inputs are missing or spent
	codeRejected      = -26 // by the rules of the network or of the pool
	codeAlreadyInUTXO = -27
	codeWarmup        = -28
	codeNoMethod      = -32601
	codeInternal      = -32603
)

// ask is failover.Set.Ask for as many rounds as configured.
func (d *Driver) ask(ctx context.Context, f func(context.Context, *endpoint) error) error {
	return d.nodes.Ask(ctx, d.config.Attempts, 0, f)
}

// verify compares the endpoint's genesis block with the network's, and makes sure that it has
// caught up with it.
func (d *Driver) verify(ctx context.Context, e *endpoint) error {
	genesis, info := newCall("getblockhash", 0), newCall("getblockchaininfo")
	if err := e.batchCall(ctx, genesis, info); err != nil {
		return err
	}

	var hash string
	if err := genesis.decode(e, &hash); err != nil {
		return err
	}

	if want := d.params.GenesisHash.String(); hash != want {
		return &failover.Mismatch{Host: e.Host, Shows: "has genesis block " + e.Clean(hash), Want: want}
	}

	var state struct {
		Syncing bool `json:"initialblockdownload"`
		Pruned  bool `json:"pruned"`
	}
	if err := info.decode(e, &state); err != nil {
		return err
	}

	if state.Syncing {
		return e.syncing("it has not caught up with the network yet")
	}

	e.pruned.Store(state.Pruned)

	return nil
}
