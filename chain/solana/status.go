package solana

import (
	"context"
	"errors"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Status returns the status of a transaction. One in a block that is not confirmed yet is TxPooled. An
// included one is final when its block is finalized, whatever the network's confirmation rule, and another node says
// the same of it, where several are configured.
//
// TxDead by conflict, for a transaction with a durable nonce, needs the same of nodes whose final block shows its nonce
// account with another value.
//
// One whose nonce the network refuses (NonceRefused) has expired.
//
// TxDead by expiry needs proof by two nodes where two are configured, and no node that knows the transaction.
// A node proves it when it has finalized a block above the last valid height, in which the transaction's blockhash can
// be used no more, still has the blocks since signing, and does not know the transaction. A node that lags or has
// pruned proves nothing.
func (d *driver) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	status, by, err := d.status(ctx, tx)

	switch {
	case err != nil:
		return chain.TxStatus{}, err
	case status.State == chain.TxUnknown:
		return d.terminalStatus(ctx, tx)
	case status.Final:
		status.Final, err = d.shared(ctx, by, tx, status)
	}

	return status, err
}

// Status returns the status of a transaction, as Driver.Status does, without TxDead: final blocks up to
// Signed.ValidToHeight without the transaction prove that it has expired, or those up to a block in which its durable
// nonce was used that it conflicts. While no other node of several shows an included one it is
// fault.Unavailable: what blocks show of it is one node's word too.
func (d *blockDriver) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	status, by, err := d.status(ctx, tx)
	if err != nil || status.State != chain.TxIncluded {
		return status, err
	}

	shared, err := d.shared(ctx, by, tx, status)
	if err == nil && !shared {
		err = fault.New(
			fault.Unavailable, "node_behind", "another node of network %s does not show transaction %s yet",
			d.network.Slug, tx.TxHash,
		)
	}

	if err != nil {
		return chain.TxStatus{}, err
	}

	return status, nil
}

// status returns the status of a transaction at the node by; TxUnknown when no node that answers knows it.
func (d *driver) status(
	ctx context.Context,
	tx chain.Signed,
) (status chain.TxStatus, by *endpoint, err error) {
	unknownTo := 0 // nodes

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		by = e

		status, err = d.nodeStatus(ctx, e, tx, 0)
		if err == nil && status.State == chain.TxUnknown {
			unknownTo++
			return failover.ErrMissing // another node may know it
		}

		return err
	})
	switch {
	case err == nil:
		return status, by, nil
	case unknownTo > 0 && ctx.Err() == nil: // no node knows it
		return chain.TxStatus{State: chain.TxUnknown}, by, nil
	}

	return chain.TxStatus{}, by, err
}

// shared reports whether another node says the same of an included transaction as the node by: no hash binds what a
// transaction did. It is false while no other one answers or those that do not show it, and true where only one is
// configured, or those that answer cannot show it any more. What two say differently is fault.Unavailable
// (nodes_disagree), unless a third one agrees with the first.
func (d *driver) shared(
	ctx context.Context,
	by *endpoint,
	tx chain.Signed,
	said chain.TxStatus,
) (bool, error) {
	agreed, behind, disputed, forgotten := false, false, false, false

	err := d.nodes.AskBeside(ctx, by, 0, func(ctx context.Context, e *endpoint) (bool, error) {
		header, err := d.headerAt(ctx, e, said.Block.Height)
		if err != nil {
			behind = behind || errors.Is(err, failover.ErrLagging)
			forgotten = forgotten || errors.Is(err, failover.ErrPruned)

			return false, err
		}

		other, err := d.nodeStatus(ctx, e, tx, header.slot)

		switch {
		case err != nil:
			_, unanswered := errors.AsType[*failover.Failure](err)
			forgotten = forgotten || !unanswered

			return false, err
		case other.State != chain.TxIncluded:
			behind = true
		case agree.SameStatus(said, other):
			agreed = true
		default:
			disputed = true
		}

		return agreed, nil
	})

	switch {
	case err != nil:
		return false, err
	case agreed:
		return true, nil
	case disputed:
		d.nodes.DemoteNode("another node says something else of transaction " + tx.TxHash)

		return false, fault.New(
			fault.Unavailable,
			"nodes_disagree",
			"the nodes of network %s say different things of transaction %s",
			d.network.Slug,
			tx.TxHash,
		)
	}

	return !behind && (forgotten || len(d.nodes.Nodes) == 1), nil
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

	if signatureStatus != nil && !e.shows(signatureStatus.Status) {
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
		Final:    signatureStatus != nil && signatureStatus.Status == final,
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
// durable nonce was used or is refused, and no node knows it. It returns TxUnknown otherwise.
func (d *driver) terminalStatus(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	unknown := chain.TxStatus{State: chain.TxUnknown}
	proves, reason := d.provesExpiry, chain.ReasonExpired

	switch {
	case tx.DurableNonce != nil:
		proves, reason = d.provesNonceUsed, chain.ReasonConflict
	case tx.ValidToHeight == 0:
		return unknown, nil
	}

	proofs, shown := 0, false

	err := d.askAll(ctx, func(e *endpoint) error {
		dead, known, err := proves(ctx, e, tx)
		if dead && err == nil {
			proofs++
		}

		shown = shown || known

		return err
	})

	switch {
	case ctx.Err() != nil:
		return chain.TxStatus{}, err
	case shown:
		return unknown, nil
	case proofs >= min(2, len(d.nodes.Nodes)):
		return chain.TxStatus{State: chain.TxDead, Reason: reason}, nil
	}

	if refused, _, err := d.NonceRefused(ctx, tx); err != nil || !refused {
		return unknown, err
	}

	return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonExpired}, nil
}

// provesExpiry reports whether one node proves that a transaction has expired, and whether it knows the
// transaction. The final height is read first, so that the lookup after it covers every block that could
// include the transaction.
func (d *driver) provesExpiry(
	ctx context.Context,
	e *endpoint,
	tx chain.Signed,
) (expired, known bool, err error) {
	last, err := e.latestBlock(ctx, final, 0)
	if err != nil {
		return false, false, err
	}

	status, err := d.nodeStatus(ctx, e, tx, last.slot)
	if err != nil || status.State != chain.TxUnknown {
		return false, err == nil, err
	}

	if last.Height <= tx.ValidToHeight {
		return false, false, nil
	}

	// The last valid height is what one node said when the transaction was built.
	valid, err := e.blockhashValid(ctx, tx, last.slot)
	if err != nil || valid {
		return false, false, err
	}

	signedAt := tx.ValidToHeight - min(tx.ValidToHeight, blockhashAge)
	_, err = d.headerAt(ctx, e, signedAt)

	return err == nil, false, err
}

// blockhashValid reports whether the blockhash of a transaction can be used at the newest final block of a node, in a
// slot of at least minSlot.
func (e *endpoint) blockhashValid(ctx context.Context, tx chain.Signed, minSlot uint64) (bool, error) {
	parsed, err := solanago.TransactionFromBytes(tx.Raw)
	if err != nil {
		return false, errMalformed
	}

	var answer struct {
		Value *bool `json:"value"`
	}

	err = e.call(ctx, &answer, "isBlockhashValid", parsed.Message.RecentBlockhash.String(), map[string]any{
		"commitment":     final,
		"minContextSlot": minSlot,
	})
	if err == nil && answer.Value == nil {
		err = e.Garbled("it does not say whether blockhash %s is valid", parsed.Message.RecentBlockhash)
	}

	return err == nil && *answer.Value, err
}
