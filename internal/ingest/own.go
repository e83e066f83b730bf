package ingest

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// This file says which transactions are ours, so that what they move is no payment.

// ownTransactions returns which of the transactions by hash are top-ups, fees, sweeps and cancellations of ours:
// those on record, and those that a wallet of ours signed without a record, as after a restore. A payout is none of
// them: what it pays to a deposit address is a payment.
func (in *intake) ownTransactions(
	ctx context.Context,
	hashes []string,
) (map[string]bool, error) { // spec D3.7
	kinds, err := in.tx.OwnTransactions(ctx, in.n.Slug, hashes)
	if err != nil {
		return nil, err
	}

	rows, err := in.tx.OutgoingByHash(ctx, in.n.Slug, hashes)
	if err != nil {
		return nil, err
	}

	own := make(map[string]bool, len(kinds))

	for hash, kind := range kinds {
		if kind != wallet.Payout {
			own[hash] = true
		}
	}

	for _, row := range rows {
		if row.Unrecorded {
			own[row.TxHash] = true
		}
	}

	return own, nil
}
