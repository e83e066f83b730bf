package solana

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// Status looks one attempt up. A transaction that a node has executed in a block that is not
// confirmed yet is TxPooled. Included is final when its block is finalized, whatever the network's
// rule for payments.
//
// Expired is what no node knows and cannot be included any more: every node that answers must have
// finalized a block above the last valid height, must still have the blocks since the transaction
// was signed, and then find neither a status nor the transaction itself. So a node that lags, has
// pruned or was asked too early proves nothing.
func (d *Driver) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	var st chain.TxStatus

	missing := 0

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		st, err = d.statusOf(ctx, e, tx)
		if err == nil && st.State == chain.TxUnknown {
			missing++
			return failover.ErrMissing // another node may have it
		}

		return err
	})
	switch {
	case err == nil:
		return st, nil
	case missing > 0 && ctx.Err() == nil: // some node does not know it, and no node does
		return d.expired(ctx, tx)
	}

	return chain.TxStatus{}, err
}

func (d *Driver) statusOf(ctx context.Context, e *endpoint, tx chain.Signed) (chain.TxStatus, error) {
	var answer struct {
		Value []*struct {
			Status string `json:"confirmationStatus"`
		} `json:"value"`
	}

	err := e.call(
		ctx, &answer, "getSignatureStatuses", []string{tx.TxHash},
		map[string]any{"searchTransactionHistory": true},
	)
	if err != nil {
		return chain.TxStatus{}, err
	}

	if len(answer.Value) != 1 {
		return chain.TxStatus{}, e.Garbled("it answered %d statuses for one transaction", len(answer.Value))
	}

	status := answer.Value[0]
	if status != nil && status.Status == "processed" {
		return chain.TxStatus{State: chain.TxPooled}, nil
	}

	f, err := d.lookUp(ctx, e, tx.TxHash)
	switch {
	case errors.Is(err, failover.ErrMissing) && status == nil:
		return chain.TxStatus{State: chain.TxUnknown}, nil
	case errors.Is(err, failover.ErrMissing):
		return chain.TxStatus{}, e.Garbled(
			"it has a status for transaction %s and does not have the transaction",
			tx.TxHash,
		)
	case err != nil:
		return chain.TxStatus{}, err
	}

	st := chain.TxStatus{
		State:    chain.TxIncluded,
		Block:    f.block.ref(),
		Final:    status != nil && status.Status == "finalized",
		Reverted: f.meta.failed(),
		Fee:      f.cost(),
	}
	st.Transfers, err = d.transfers(f.executed)

	return st, err
}

// cost is what a transaction of ours took beside what it paid: the network fee, and the rent of the
// token accounts that it made.
func (x executed) cost() chain.Amount {
	sum := chain.Units(x.meta.Fee)
	if x.meta.failed() {
		return sum
	}

	for _, b := range x.meta.PostTokenBalances {
		if x.meta.PreBalances[b.AccountIndex] == 0 {
			sum = sum.Add(chain.Units(x.meta.PostBalances[b.AccountIndex]))
		}
	}

	return sum
}

// expired proves that a transaction that no node knows can never be included, or says that it is unknown.
func (d *Driver) expired(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	unknown := chain.TxStatus{State: chain.TxUnknown}
	if tx.ValidToHeight == 0 {
		return unknown, nil
	}

	for _, e := range d.nodes.Nodes {
		err := d.nodes.Vet(ctx, e)

		dead := false
		if err == nil {
			dead, err = d.missedFor(ctx, e, tx)
		}

		if ctx.Err() != nil {
			return chain.TxStatus{}, failover.Fault(d.network.Slug, ctx.Err())
		}

		if err != nil || !dead {
			return unknown, nil // a node that cannot say so could know better
		}
	}

	return chain.TxStatus{State: chain.TxDead, Death: chain.DeathExpired}, nil
}

// missedFor says whether one node proves that a transaction missed its time. The final height is
// read first: what is looked up after it would have been found.
func (d *Driver) missedFor(ctx context.Context, e *endpoint, tx chain.Signed) (bool, error) {
	final, err := e.newest(ctx, "finalized")
	if err != nil || final.Height <= tx.ValidToHeight {
		return false, err
	}

	if _, err := d.headerAt(ctx, e, tx.ValidToHeight-min(tx.ValidToHeight, blockhashAge)); err != nil {
		return false, err
	}

	st, err := d.statusOf(ctx, e, tx)

	return err == nil && st.State == chain.TxUnknown, err
}
