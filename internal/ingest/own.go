package ingest

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// This file says which transactions are ours, so that what they move is no payment.

// owned says what is on record of the transactions of a batch.
type owned struct {
	// own are top-ups, fees, sweeps and cancellations of ours, by hash. A payout is none of them: what it pays to a
	// deposit address is a payment.
	own map[string]bool
	// lost are the rows of transactions that a wallet of ours signed and that are not on record, as after a restore,
	// by hash. Of coin that one brought, nobody knows whether it was a top-up. Tokens are never topped up.
	lost map[string]wallet.Outgoing
}

// ownTransactions returns what is on record of the transactions by hash.
func (in *intake) ownTransactions(ctx context.Context, hashes []string) (owned, error) { // spec D3.7
	ours, err := in.tx.OwnTransactions(ctx, in.n.Slug, hashes)
	if err != nil {
		return owned{}, err
	}

	rows, err := in.tx.OutgoingByHash(ctx, in.n.Slug, hashes)
	if err != nil {
		return owned{}, err
	}

	out := owned{own: make(map[string]bool, len(ours)), lost: map[string]wallet.Outgoing{}}

	for hash, t := range ours {
		if t.Kind != wallet.Payout {
			out.own[hash] = true
		}
	}

	for _, row := range rows {
		if walletstate.IsOpen(row) || walletstate.IsForeign(row) {
			out.lost[row.TxHash] = row
		}
	}

	return out, nil
}

// verdict is what a transfer to an address of ours is, as far as our own transactions go.
type verdict int

const (
	// isPayment: it is taken in.
	isPayment verdict = iota
	// isOurs: it moved money of ours, and is no payment.
	isOurs
	// isUnsaid: a person has to say what it was.
	isUnsaid
)

// of returns what a transfer is. Too little to be a payment asks nobody.
func (o owned) of(m observedTransfer, to invoice.Address, asset chain.Asset) verdict {
	row, lost := o.lost[m.TxHash]

	switch {
	case o.own[m.TxHash]:
		return isOurs
	case !lost || asset.Kind != chain.Native || namesReceiver(row, to):
		return isPayment
	case walletstate.IsForeign(row) || m.at.IsZero() || m.Amount.Less(asset.Dust):
		return isOurs
	}

	return isUnsaid
}

// namesReceiver reports whether a person said that a transaction that is not on record paid an address of ours.
func namesReceiver(row wallet.Outgoing, to invoice.Address) bool {
	names := strings.Split(row.Acknowledged, ",")

	return walletstate.IsForeign(row) && slices.ContainsFunc(receiverIDs(to), func(id string) bool {
		return slices.Contains(names, id)
	})
}

// receiverIDs returns the ids of what an address belongs to.
func receiverIDs(to invoice.Address) []string {
	return slices.DeleteFunc(
		[]string{to.InvoiceID, to.DepositAddressID}, func(id string) bool { return id == "" },
	)
}
