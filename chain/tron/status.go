package tron

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Status returns the state of a transaction of ours. It is included when the verified block that a node names
// for it holds it (Blocks), and where several nodes are configured, when two of them say the same of what it did and
// cost: receipts are under no hash. Until then it is fault.Unavailable (nodes_disagree, node_behind,
// node_unavailable). A transaction that a node does not have is unknown.
//
// TxDead is never answered: a node's word on a hash is no proof. That a transaction has expired is shown by
// final blocks up to Signed.ValidTo without it: a block includes only transactions that expire after its
// parent.
func (d *driver) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	id, err := parseTxID(signed.TxHash)
	if err != nil {
		return chain.TxStatus{}, err
	}

	return agree.Status(
		ctx,
		d.nodes,
		d.attempts,
		signed.TxHash,
		func(ctx context.Context, node *endpoint) (chain.TxStatus, error) { return d.statusAt(ctx, node, id) },
	)
}

// statusAt returns the state at one node. The head is read before the transaction.
func (d *driver) statusAt(ctx context.Context, node *endpoint, id [32]byte) (chain.TxStatus, error) {
	head, err := node.head(ctx)
	if err != nil {
		return chain.TxStatus{}, err
	}

	lookup, err := node.lookUp(ctx, id)
	switch {
	case err != nil:
		return chain.TxStatus{}, err
	case lookup.tx == nil:
		return chain.TxStatus{State: chain.TxUnknown}, nil
	case lookup.info == nil:
		return chain.TxStatus{State: chain.TxPooled}, nil
	}

	final, isFinal := d.finalHeight(head)

	status := chain.TxStatus{
		State:    chain.TxIncluded,
		Block:    lookup.block,
		Reverted: lookup.info.failed(),
		Final:    isFinal && lookup.block.Height <= final,
	}
	if status.Fee, err = lookup.info.fee(node); err != nil {
		return chain.TxStatus{}, err
	}

	status.Transfers, _, err = d.transfersOf(node, *lookup.tx, lookup.info)

	return status, err
}

var _ chain.GasReader = (*driver)(nil)

// RanOutOfGas reports whether the block that holds a transaction has OUT_OF_ENERGY as its result, which the block's id
// commits to.
func (d *driver) RanOutOfGas(ctx context.Context, signed chain.Signed) (bool, error) {
	id, err := parseTxID(signed.TxHash)
	if err != nil {
		return false, err
	}

	ranOut, _, err := askTwo(
		ctx, d, "the result of transaction "+signed.TxHash,
		func(ctx context.Context, node *endpoint) (bool, error) {
			lookup, err := node.lookUp(ctx, id)
			if err == nil && lookup.info == nil {
				err = failover.ErrMissing
			}

			return err == nil && lookup.tx.outOfEnergy, err
		},
		func(_ context.Context, a, b word[bool]) (bool, bool) { return a.value, a.value == b.value },
	)

	return ranOut, err
}

// finalHeight returns the newest final height by the network's rule; ok is false while there is none.
func (d *driver) finalHeight(head chain.Head) (height uint64, ok bool) {
	switch {
	case d.network.Rule == chain.RuleFinalized:
		return head.Final.Height, true
	case head.Tip.Height+1 < d.network.Confirmations:
		return 0, false
	}

	return head.Tip.Height + 1 - d.network.Confirmations, true
}
