package evm

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Status returns the state of one of our transactions.
//
// TxDead (conflict) needs a proof: at the newest final block the nonce is used up, and afterwards
// no configured node knows the transaction. All nodes must say so, since one may have pruned its
// transaction index, and a wrong proof would pay twice.
//
// A node that does not answer is fault.Unavailable, and so is one without the state of the final
// block. If that block is more than 128 blocks deep, the proof needs a node with older states.
func (d *Driver) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	hash, err := parseHash(tx.TxHash)
	if err != nil {
		return chain.TxStatus{}, err
	}

	from, err := parseAddress(string(tx.From))
	if err != nil {
		return chain.TxStatus{}, err
	}

	var status chain.TxStatus

	nonceUsed := false

	err = d.ask(ctx, 0, func(ctx context.Context, node *endpoint) (err error) {
		status, nonceUsed, err = d.nodeStatus(ctx, node, hash, from, tx.Nonce)
		return err
	})
	if err != nil {
		return chain.TxStatus{}, err
	}

	if !nonceUsed {
		return status, nil
	}

	for _, node := range d.nodes.Nodes {
		if err := d.nodes.Check(ctx, node); err != nil {
			return chain.TxStatus{}, failover.Fault(d.network.Slug, err)
		}

		lookup, err := d.lookUpTx(ctx, node, hash)
		if err != nil {
			return chain.TxStatus{}, failover.Fault(d.network.Slug, err)
		}

		if lookup.tx != nil {
			return status, nil
		}
	}

	return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonConflict}, nil
}

// nodeStatus returns the status at one node. nonceUsed reports that its final block proves the
// nonce used up while it does not know the transaction.
func (d *Driver) nodeStatus(
	ctx context.Context,
	node *endpoint,
	hash common.Hash,
	from common.Address,
	nonce uint64,
) (status chain.TxStatus, nonceUsed bool, err error) {
	head, err := d.readHead(ctx, node)
	if err != nil {
		return status, false, err
	}

	final, isFinal := d.finalHeight(head)
	lookup, err := d.lookUpTx(ctx, node, hash)

	used := false
	if err == nil && lookup.tx == nil && isFinal {
		if used, err = node.nonceUsed(ctx, from, nonce, d.conflictHeight(head, final)); used {
			// It may have been included meanwhile, and have used the nonce itself.
			lookup, err = d.lookUpTx(ctx, node, hash)
		}
	}

	switch {
	case err != nil:
		return status, false, err
	case lookup.tx == nil:
		return chain.TxStatus{State: chain.TxUnknown}, used, nil
	case lookup.receipt == nil:
		return chain.TxStatus{State: chain.TxPooled}, false, nil
	}

	status = chain.TxStatus{
		State:    chain.TxIncluded,
		Block:    lookup.block,
		Reverted: *lookup.receipt.Status == 0,
		Final:    isFinal && lookup.block.Height <= final,
	}
	if status.Fee, err = lookup.receipt.fee(node); err != nil {
		return status, false, err
	}

	status.Transfers, err = d.transfersOf(node, &lookup.tx.txJSON, lookup.receipt)

	return status, false, err
}

// finalHeight returns the newest final height by the network's rule; ok is false while there is
// none. Without safe and finalized blocks, Confirmations decides.
func (d *Driver) finalHeight(head chain.Head) (height uint64, ok bool) {
	switch {
	case d.network.Rule == chain.RuleSafe && !head.Safe.IsZero():
		return head.Safe.Height, true
	case d.network.Rule == chain.RuleFinalized && !head.Final.IsZero():
		return head.Final.Height, true
	case head.Tip.Height+1 < d.network.Confirmations:
		return 0, false
	}

	return head.Tip.Height + 1 - d.network.Confirmations, true
}

// conflictHeight returns the height at which a conflict is proven. Under the "safe" rule that is
// the finalized block where there is one, since TxDead cannot be taken back.
func (d *Driver) conflictHeight(head chain.Head, final uint64) uint64 {
	if d.network.Rule == chain.RuleSafe && !head.Final.IsZero() {
		return head.Final.Height
	}

	return final
}

// nonceUsed reports whether the account had sent more than nonce transactions at the final height.
// The count is read at that block's hash.
func (e *endpoint) nonceUsed(ctx context.Context, from common.Address, nonce, final uint64) (bool, error) {
	latest := newCall("eth_getTransactionCount", from, "latest")
	if err := e.do(ctx, latest); err != nil {
		return false, err
	}

	var count hexutil.Uint64
	if err := latest.decode(e, &count); err != nil || uint64(count) <= nonce {
		return false, err // unused at the tip, hence at any older state, which need not be read
	}

	ref, err := e.refAt(ctx, final)
	if err != nil {
		return false, err
	}

	rpcCall := newCall(
		"eth_getTransactionCount", from,
		map[string]any{"blockHash": ref.Hash, "requireCanonical": true},
	)
	if err := e.do(ctx, rpcCall); err != nil {
		return false, err
	}

	err = rpcCall.decode(e, &count)

	return err == nil && uint64(count) > nonce, err
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
