package solana

import (
	"context"
	"strings"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// The JSON-RPC codes that are acted on. Sources: JSON-RPC 2.0, section 5.1; Agave,
// rpc-client-api/src/custom_error.rs.
const (
	codeBlockCleanedUp    = -32001 // the block is older than the node's ledger
	codePreflightFailed   = -32002
	codeBadSignature      = -32003
	codeBlockNotYet       = -32004 // the node has not got it
	codeNodeUnhealthy     = -32005
	codeSlotSkipped       = -32007
	codeLongTermSkipped   = -32009 // skipped, or missing in long-term storage
	codeNoHistory         = -32011
	codeBlockStatusNotYet = -32014
	codeMinContextSlot    = -32016 // the node is behind the slot asked for
	codeInvalidParams     = -32602
	codeTooManyRequests   = 429
)

// unfit says that a refusal is the node's own trouble.
func unfit(r *failover.Refusal) bool {
	switch r.Code {
	case codeNodeUnhealthy, codeNoHistory, codeMinContextSlot, codeTooManyRequests:
		return true
	}

	return false
}

// ask is failover.Set.Ask for as many rounds as configured.
func (d *Driver) ask(ctx context.Context, f func(context.Context, *endpoint) error) error {
	return d.nodes.Ask(ctx, d.config.Attempts, 0, f)
}

// verify compares the endpoint's genesis hash with the network's.
func (d *Driver) verify(ctx context.Context, e *endpoint) error {
	var genesis string
	if err := e.call(ctx, &genesis, "getGenesisHash"); err != nil {
		return err
	}

	if want := strings.TrimPrefix(d.network.CAIP2, "solana:"); reference(genesis) != want {
		return &failover.Mismatch{Host: e.Host, Shows: "has genesis hash " + e.Clean(genesis), Want: want}
	}

	return nil
}
