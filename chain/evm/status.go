package evm

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Status returns the state of one of our transactions. A transaction in a block is read from that block,
// verified as by Blocks. Only the L1 data fee of an OP-stack rollup is taken from the node unverified.
//
// A transaction that no node knows is TxUnknown. Status never returns TxDead: one node's "not found" proves
// nothing, and neither does a nonce that is used up. The blocks prove it: they list the transaction that used
// each nonce (chain.Block.Spent).
func (d *driver) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	hash, err := parseHash(tx.TxHash)
	if err != nil {
		return chain.TxStatus{}, err
	}

	return agree.VerifiedStatus(
		ctx, d.nodes, d.attempts,
		func(ctx context.Context, node *endpoint) (chain.TxStatus, error) {
			return d.nodeStatus(ctx, node, hash)
		},
	)
}

// nodeStatus returns the status at one node.
func (d *driver) nodeStatus(
	ctx context.Context,
	node *endpoint,
	hash common.Hash,
) (status chain.TxStatus, err error) {
	head, err := d.readHead(ctx, node)
	if err != nil {
		return status, err
	}

	lookup, err := d.lookUpTx(ctx, node, hash)

	switch {
	case err != nil:
		return status, err
	case lookup.tx == nil:
		return chain.TxStatus{State: chain.TxUnknown}, nil
	case lookup.receipt == nil:
		return chain.TxStatus{State: chain.TxPooled}, nil
	}

	status = chain.TxStatus{
		State:    chain.TxIncluded,
		Block:    lookup.block,
		Reverted: *lookup.receipt.Status == 0,
		Final:    d.isFinal(head, lookup.block),
	}
	if status.Fee, err = lookup.receipt.fee(node); err != nil {
		return status, err
	}

	status.Transfers, err = d.transfersOf(node, lookup.tx, lookup.receipt, lookup.coinLogs)

	return status, err
}

// isFinal reports whether a block is final by the network's rule. Without safe and finalized blocks, Confirmations and
// Fallback decide.
func (d *driver) isFinal(head chain.Head, block chain.Ref) bool {
	switch {
	case d.network.Rule == chain.RuleSafe && !head.Safe.IsZero():
		return block.Height <= head.Safe.Height
	case d.network.Rule == chain.RuleFinalized && !head.Final.IsZero():
		return block.Height <= head.Final.Height
	}

	return block.Height+d.network.Confirmations <= head.Tip.Height+1 &&
		chaindata.IsOld(d.network, head.Tip.Time, block.Time)
}

// fee returns the fee in wei: gas used × effective gas price, plus the L1 data fee of an OP-stack
// rollup.
func (r *receiptJSON) fee(node *endpoint) (chain.Amount, error) {
	if r.EffectiveGasPrice == nil {
		return chain.Amount{}, node.Garbled(
			"the receipt of transaction %s names no gas price",
			r.TransactionHash.Hex(),
		)
	}

	fee := new(big.Int).Mul(r.EffectiveGasPrice.ToInt(), new(big.Int).SetUint64(uint64(*r.GasUsed)))
	if r.L1Fee != nil {
		fee.Add(fee, r.L1Fee.ToInt())
	}

	return node.amount((*hexutil.Big)(fee))
}
