package engine

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// This file finds what an acknowledged transaction paid: to invoices and deposit addresses, and to master
// wallets.

// measure corrects the transfers of the transaction by the amounts that arrived at the master wallets of the
// named settlements.
func (a *acknowledgement) measure(ctx context.Context, row wallet.Outgoing) (err error) {
	var masters []chain.Address
	for _, master := range a.masters {
		masters = append(masters, master.Address)
	}

	a.status.Transfers, err = a.Transactions.MeasuredSweep(ctx, row, a.status.Transfers, masters)

	return err
}

// receivers returns the named ids of invoices and deposit addresses that the transaction paid coin to. They
// require Foreign: no transaction on record pays them.
func (a *acknowledgement) receivers(ctx context.Context, tx Tx, row wallet.Outgoing) ([]string, error) {
	if row.Failed || a.status.Reverted {
		return nil, nil
	}

	paid, err := a.Ingester.PaidByLost(ctx, tx, a.driver.Network(), a.status.Transfers, a.ids)
	if err == nil && len(paid) > 0 && !a.foreign {
		return nil, mismatch(
			"transaction %s paid %s: acknowledge it as %q and its id", a.txHash, paid[0], wallet.Foreign,
		)
	}

	return paid, err
}
