package tron

import (
	"context"
	"encoding/hex"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Status returns the state of a transaction of ours.
//
// A transaction is dead (expired) when a solidified block is at or past its expiration and afterwards no
// configured node has it, in its pool, chain or solidified store. A block includes only transactions that
// expire after its parent, so no later block can include it. All nodes must agree, since one may have pruned:
// a wrong proof would pay twice. A node without an answer makes the call fault.Unavailable.
func (d *Driver) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	id, err := parseTxID(signed.TxHash)
	if err != nil {
		return chain.TxStatus{}, err
	}

	var status chain.TxStatus

	expired := false

	err = d.ask(ctx, 0, func(ctx context.Context, node *endpoint) (err error) {
		status, expired, err = d.statusAt(ctx, node, id, signed)
		return err
	})
	if err != nil {
		return chain.TxStatus{}, err
	}

	if !expired {
		return status, nil
	}

	for _, node := range d.nodes.Nodes {
		if err := d.nodes.Check(ctx, node); err != nil {
			return chain.TxStatus{}, failover.Fault(d.network.Slug, err)
		}

		current, expired, err := d.statusAt(ctx, node, id, signed)
		if err != nil {
			return chain.TxStatus{}, failover.Fault(d.network.Slug, err)
		}

		if !expired {
			return current, nil
		}
	}

	return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonExpired}, nil
}

// statusAt returns the state at one node. expired means that a solidified block of it is past the expiration
// and that it does not have the transaction. The solidified block is read before the transaction.
func (d *Driver) statusAt(
	ctx context.Context,
	node *endpoint,
	id [32]byte,
	signed chain.Signed,
) (status chain.TxStatus, expired bool, err error) {
	head, err := node.head(ctx)
	if err != nil {
		return status, false, err
	}

	lookup, err := node.lookUp(ctx, id)
	switch {
	case err != nil:
		return status, false, err
	case lookup.tx == nil:
		unknown := chain.TxStatus{State: chain.TxUnknown}
		if signed.ValidTo.IsZero() || head.Final.Time.Before(signed.ValidTo) {
			return unknown, false, nil
		}

		solid, err := node.solidified(ctx, id)

		return unknown, err == nil && !solid, err
	case lookup.info == nil:
		return chain.TxStatus{State: chain.TxPooled}, false, nil
	}

	final, isFinal := d.finalHeight(head)

	status = chain.TxStatus{
		State:    chain.TxIncluded,
		Block:    lookup.block,
		Reverted: lookup.info.failed(),
		Final:    isFinal && lookup.block.Height <= final,
	}
	if status.Fee, err = lookup.info.fee(node); err != nil {
		return status, false, err
	}

	status.Transfers, _, err = d.transfersOf(node, *lookup.tx, lookup.info)

	return status, false, err
}

// solidified reports whether the node's solidified store has a transaction.
func (e *endpoint) solidified(ctx context.Context, id [32]byte) (bool, error) {
	var tx txJSON
	return e.post(ctx, solidified, "gettransactionbyid", valueRequest{hex.EncodeToString(id[:])}, &tx)
}

// finalHeight returns the newest final height by the network's rule; ok is false while there is none.
func (d *Driver) finalHeight(head chain.Head) (height uint64, ok bool) {
	switch {
	case d.network.Rule == chain.RuleFinalized:
		return head.Final.Height, true
	case head.Tip.Height+1 < d.network.Confirmations:
		return 0, false
	}

	return head.Tip.Height + 1 - d.network.Confirmations, true
}
