package solana

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Status returns the status of a transaction. One in a block that is not confirmed yet is TxPooled. An
// included one is final when its block is finalized, whatever the network's confirmation rule.
//
// TxDead by conflict, for a transaction with a durable nonce, needs the same of nodes whose final block shows its nonce
// account with another value.
//
// TxDead by expiry needs proof by two nodes where two are configured, and no node that knows the transaction.
// A node proves it when it has finalized a block above the last valid height, still has the blocks since
// signing, and does not know the transaction. A node that lags or has pruned proves nothing.
func (d *driver) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	status, err := d.status(ctx, tx)
	if err != nil || status.State != chain.TxUnknown {
		return status, err
	}

	return d.terminalStatus(ctx, tx)
}

// Status returns the status of a transaction, as Driver.Status does, without TxDead: final blocks up to
// Signed.ValidToHeight without the transaction prove that it has expired, or those up to a block in which its durable
// nonce was used that it conflicts.
func (d *blockDriver) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	return d.status(ctx, tx)
}

// status returns TxUnknown when no node that answers knows the transaction.
func (d *driver) status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	var status chain.TxStatus

	unknownTo := 0 // nodes

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		status, err = d.nodeStatus(ctx, e, tx, 0)
		if err == nil && status.State == chain.TxUnknown {
			unknownTo++
			return failover.ErrMissing // another node may know it
		}

		return err
	})
	switch {
	case err == nil:
		return status, nil
	case unknownTo > 0 && ctx.Err() == nil: // no node knows it
		return chain.TxStatus{State: chain.TxUnknown}, nil
	}

	return chain.TxStatus{}, err
}

// nodeStatus returns the status of a transaction at one node, as a backend of it knows that has reached a slot.
func (d *driver) nodeStatus(
	ctx context.Context,
	e *endpoint,
	tx chain.Signed,
	minSlot uint64,
) (chain.TxStatus, error) {
	signatureStatus, err := e.signatureStatus(ctx, tx.TxHash, minSlot)
	if err != nil {
		return chain.TxStatus{}, err
	}

	if signatureStatus != nil && signatureStatus.Status == "processed" {
		return chain.TxStatus{State: chain.TxPooled}, nil
	}

	fetch := d.fetchTransaction
	if signatureStatus != nil {
		fetch = d.fetchListed
	}

	found, err := fetch(ctx, e, tx.TxHash)
	switch {
	case errors.Is(err, failover.ErrMissing):
		return chain.TxStatus{State: chain.TxUnknown}, nil
	case err != nil:
		return chain.TxStatus{}, err
	}

	status := chain.TxStatus{
		State:    chain.TxIncluded,
		Block:    found.block.ref(),
		Final:    signatureStatus != nil && signatureStatus.Status == "finalized",
		Reverted: found.meta.failed(),
		Fee:      found.cost(),
	}
	status.Transfers, err = d.transfers(found.executedTx)

	return status, err
}

// signatureStatus is an answer of getSignatureStatuses.
type signatureStatus struct {
	Status string `json:"confirmationStatus"`
}

// signatureStatus returns what a node knows of a signature, nil for nothing. Behind one URL several backends may
// answer; the call takes no lowest slot, so it is repeated until one answers that has reached it.
func (e *endpoint) signatureStatus(
	ctx context.Context,
	hash string,
	minSlot uint64,
) (*signatureStatus, error) {
	for range triesOfBackends {
		var answer struct {
			Context struct {
				Slot uint64 `json:"slot"`
			} `json:"context"`
			Value []*signatureStatus `json:"value"`
		}

		err := e.call(
			ctx, &answer, "getSignatureStatuses", []string{hash},
			map[string]any{"searchTransactionHistory": true},
		)
		if err != nil {
			return nil, err
		}

		if len(answer.Value) != 1 {
			return nil, e.Garbled("it answered %d statuses for one transaction", len(answer.Value))
		}

		if answer.Value[0] != nil || answer.Context.Slot >= minSlot {
			return answer.Value[0], nil
		}
	}

	return nil, failover.ErrLagging
}

// cost returns the network fee and the rent of the token accounts that the transaction created, in
// lamports.
func (tx executedTx) cost() chain.Amount {
	cost := chain.Units(tx.meta.Fee)
	if tx.meta.failed() {
		return cost
	}

	for _, balance := range tx.meta.PostTokenBalances {
		if i := balance.AccountIndex; tx.opened(i) {
			rent := chain.Units(tx.meta.PostBalances[i]).SubFloor(chain.Units(tx.meta.PreBalances[i]))
			cost = cost.Add(rent)
		}
	}

	return cost
}

// opened reports whether the transaction opened a token account. There may have been coin at its address before.
func (tx executedTx) opened(index int) bool {
	has := func(balances []tokenBalance) bool {
		return slices.ContainsFunc(balances, func(b tokenBalance) bool { return b.AccountIndex == index })
	}

	return !has(tx.meta.PreTokenBalances) && has(tx.meta.PostTokenBalances)
}

// terminalStatus returns TxDead when two nodes, or the only one, prove that a transaction has expired, or that its
// durable nonce was used, and no node knows it. It returns TxUnknown otherwise.
func (d *driver) terminalStatus(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	unknown := chain.TxStatus{State: chain.TxUnknown}
	proves, reason := d.provesExpiry, chain.ReasonExpired

	switch {
	case tx.DurableNonce != nil:
		proves, reason = d.provesNonceUsed, chain.ReasonConflict
	case tx.ValidToHeight == 0:
		return unknown, nil
	}

	proofs := 0

	for _, e := range d.nodes.Nodes {
		err := d.nodes.Check(ctx, e)

		dead, known := false, false
		if err == nil {
			dead, known, err = proves(ctx, e, tx)
		}

		if ctx.Err() != nil {
			return chain.TxStatus{}, failover.Fault(d.network.Slug, ctx.Err())
		}

		if known {
			return unknown, nil
		}

		if err == nil && dead {
			proofs++
		}
	}

	if proofs < min(2, len(d.nodes.Nodes)) {
		return unknown, nil
	}

	return chain.TxStatus{State: chain.TxDead, Reason: reason}, nil
}

// provesExpiry reports whether one node proves that a transaction has expired, and whether it knows the
// transaction. The final height is read first, so that the lookup after it covers every block that could
// include the transaction.
func (d *driver) provesExpiry(
	ctx context.Context,
	e *endpoint,
	tx chain.Signed,
) (expired, known bool, err error) {
	final, err := e.latestBlock(ctx, "finalized", 0)
	if err != nil {
		return false, false, err
	}

	status, err := d.nodeStatus(ctx, e, tx, final.slot)
	if err != nil || status.State != chain.TxUnknown {
		return false, err == nil, err
	}

	if final.Height <= tx.ValidToHeight {
		return false, false, nil
	}

	signedAt := tx.ValidToHeight - min(tx.ValidToHeight, blockhashAge)
	_, err = d.headerAt(ctx, e, signedAt)

	return err == nil, false, err
}
