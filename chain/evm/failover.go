package evm

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// tooMuch is the kind of a failure that a smaller request may avoid.
const tooMuch failover.Kind = "too much"

// The JSON-RPC error codes in use. Sources: JSON-RPC 2.0, section 5.1; EIP-1474; go-ethereum's answers under
// EIP-4444.
const (
	codeReverted      = 3
	codePruned        = 4444
	codeServer        = -32000
	codeInvalid       = -32600
	codeNotFound      = -32001
	codeUnsupported   = -32004
	codeNoMethod      = -32601
	codeInvalidParams = -32602
	codeUnknownBlock  = -39001
)

// isNoMethod reports whether a node does not support a method.
func isNoMethod(err error) bool { return failover.RefusedWith(err, codeNoMethod, codeUnsupported) }

// hasNoTag reports whether a node refused a block tag because it has no such block. Before the first
// finalized block, go-ethereum answers -32000; other nodes answer that the block or the tag is unknown.
func hasNoTag(err error) bool {
	return failover.RefusedWith(
		err, codeServer, codeInvalid, codeNotFound, codeNoMethod, codeInvalidParams, codeUnknownBlock,
	)
}

// ask makes a call to the nodes in turn, with as many attempts as configured; see failover.Set.Ask.
func (d *driver) ask(ctx context.Context, need uint64, call func(context.Context, *endpoint) error) error {
	return d.nodes.Ask(ctx, d.attempts, need, call)
}

// verify compares the node's chain id with the network's.
func (d *driver) verify(ctx context.Context, node *endpoint) error {
	rpcCall := newCall("eth_chainId")
	if err := node.do(ctx, rpcCall); err != nil {
		return err
	}

	var id hexutil.Uint64
	if err := rpcCall.decode(node, &id); err != nil {
		return err
	}

	if uint64(id) != d.network.ChainID {
		return &failover.Mismatch{
			Host:  node.Host,
			Shows: fmt.Sprintf("serves chain id %d", uint64(id)),
			Want:  fmt.Sprint(d.network.ChainID),
		}
	}

	return nil
}

// refreshTip reads the node's tip; a tip below need is failover.ErrLagging.
func refreshTip(ctx context.Context, node *endpoint, need uint64) error {
	rpcCall := newCall("eth_blockNumber")
	if err := node.do(ctx, rpcCall); err != nil {
		return err
	}

	var tip hexutil.Uint64
	if err := rpcCall.decode(node, &tip); err != nil {
		return err
	}

	node.SawTip(uint64(tip))

	if uint64(tip) < need {
		return failover.ErrLagging
	}

	return nil
}
