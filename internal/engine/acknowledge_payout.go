package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/payout"
)

// This file finds the payouts that a transaction is acknowledged as.

// takePayouts finds the named payouts and adds those that have not failed to f. It returns the other ids,
// which must be settlements.
func (a *acknowledgement) takePayouts(
	ctx context.Context,
	tx Tx,
	row wallet.Outgoing,
	f *txmgr.Fulfillment,
) (settlements []string, err error) {
	receivers, err := a.receivers(ctx, tx, row)
	if err != nil {
		return nil, err
	}

	a.payouts, a.paid = nil, nil

	for _, id := range a.ids {
		if slices.Contains(receivers, id) {
			continue
		}

		p, found, err := payoutNamed(ctx, tx, id)
		if err != nil {
			return nil, err
		}

		if !found {
			settlements = append(settlements, id)
			continue
		}

		if p.ID != id {
			a.payouts = append(a.payouts, p.ID)
		}

		a.paid = append(a.paid, p.ID)

		if err := a.checkWaits(id, p); err != nil {
			return nil, err
		}

		if p.Status != payout.Failed { // spec D11.11
			f.TransactionIDs = append(f.TransactionIDs, p.TransactionID)
		}
	}

	return settlements, nil
}

// checkWaits refuses a payout of another network, and one that its own transaction paid. id is the caller's
// name of it.
func (a *acknowledgement) checkWaits(id string, p payout.Payout) error {
	switch {
	case p.Network != a.network:
		return mismatch("%s is of network %s, transaction %s of %s", id, p.Network, a.txHash, a.network)
	case p.Status == payout.Included || p.Status == payout.Confirmed:
		return mismatch("%s was paid by its own transaction %s, not by %s", id, p.TxHash, a.txHash)
	default:
		return nil
	}
}

// payoutNamed returns the payout with an id, or the one that pays the refund with that id.
func payoutNamed(ctx context.Context, tx Tx, id string) (p payout.Payout, found bool, err error) {
	p, err = tx.PayoutByID(ctx, id)
	if !errors.Is(err, fault.NotFound) {
		return p, err == nil, err
	}

	r, err := tx.RefundByID(ctx, id)
	if errors.Is(err, fault.NotFound) {
		return payout.Payout{}, false, nil
	}

	if err != nil || r.PayoutID == "" {
		return payout.Payout{}, false, err
	}

	// The payout's tag covers the refund that it pays; the refund's row has no tag.
	if p, err = tx.PayoutByID(ctx, r.PayoutID); err == nil && p.RefundID != r.ID {
		return payout.Payout{}, false, nil
	}

	return p, err == nil, err
}
