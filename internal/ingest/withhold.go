package ingest

// This file withholds what a transaction that is not on record brought, until a person says whether it was a payment.

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// errUnsaid is the error of a retry row that waits for Engine.Acknowledge.
var errUnsaid = fault.New(
	fault.State,
	"transaction_unacknowledged",
	"a wallet of ours paid it by a transaction that is not on record: acknowledge that, naming the invoice or deposit "+
		"address if it was a payment and no top-up",
)

// withhold has a transfer wait in a retry row. A row that is tried again fails with errUnsaid.
func (in *intake) withhold(m observedTransfer) error {
	if in.p.retry != "" {
		return errUnsaid
	}

	in.unsaid[m.key()] = m

	return nil
}

// PaidByLost returns which of ids are those of invoices and deposit addresses that transfers of a transaction paid in
// the native coin of a network.
func (s *Ingester) PaidByLost(
	ctx context.Context,
	r invoice.Reader,
	n chain.Network,
	transfers []chain.Transfer,
	ids []string,
) (paid []string, err error) {
	matched, addresses, err := s.matchNative(ctx, r, n, transfers)

	for _, m := range matched {
		for _, id := range receiverIDs(addresses[m.To]) {
			if slices.Contains(ids, id) && !slices.Contains(paid, id) {
				paid = append(paid, id)
			}
		}
	}

	return paid, err
}

// matchNative returns the transfers in the native coin to addresses of ours, net, with the addresses.
func (s *Ingester) matchNative(
	ctx context.Context,
	r invoice.Reader,
	n chain.Network,
	transfers []chain.Transfer,
) ([]observedTransfer, map[chain.Address]invoice.Address, error) {
	native, _ := n.Native()

	var coin []observedTransfer

	for _, t := range arrivals(transfers) {
		if t.AssetID == native.ID {
			coin = append(coin, observedTransfer{Transfer: t})
		}
	}

	return s.match(ctx, r, n, coin)
}

// AcknowledgedTx has what the transaction of a row brought looked at again now that a person said what it was: what
// is withheld of it, and what the person names as paid.
func (s *Ingester) AcknowledgedTx(
	ctx context.Context,
	tx invoice.Tx,
	n chain.Network,
	row wallet.Outgoing,
) error {
	rows, err := AllRetries(ctx, tx, n.Slug, s.now())
	if err != nil {
		return err
	}

	queued := map[invoice.TransferKey]bool{}

	for _, r := range rows {
		if r.Transfer.TxHash != row.TxHash {
			continue
		}

		queued[invoicestate.KeyOf(r.Transfer)] = true
		r.DueAt = s.now()

		if err := tx.PutRetry(ctx, &r); err != nil {
			return err
		}
	}

	matched, addresses, err := s.matchNative(ctx, tx, n, row.Transfers)
	if err != nil || row.Failed {
		return err
	}

	for _, m := range matched {
		if queued[m.key()] || !namesReceiver(row, addresses[m.To]) {
			continue
		}

		r := scan.Retry{
			ID:        s.ids.Next(),
			Network:   n.Slug,
			Transfer:  m.Transfer,
			Block:     row.Block,
			Error:     short(errUnsaid),
			DueAt:     s.now(),
			CreatedAt: s.now(),
		}
		if err := tx.PutRetry(ctx, &r); err != nil {
			return err
		}
	}

	return nil
}

// queue adds a retry row for each of some transfers, or brings the one that it has up to date.
func (in *intake) queue(
	ctx context.Context,
	transfers map[invoice.TransferKey]observedTransfer,
	cause error,
) error {
	if len(transfers) == 0 {
		return nil
	}

	rows, err := AllRetries(ctx, in.tx, in.n.Slug, in.now)
	if err != nil {
		return err
	}

	queued := map[invoice.TransferKey]scan.Retry{}
	for _, row := range rows {
		queued[invoicestate.KeyOf(row.Transfer)] = row
	}

	for _, key := range slices.SortedFunc(maps.Keys(transfers), invoicestate.Compare) {
		m := transfers[key]

		row, known := queued[key]
		if !known {
			row = scan.Retry{ID: in.s.ids.Next(), Network: in.n.Slug, CreatedAt: in.now}
		}

		row.Transfer, row.Block = m.Transfer, m.at // a fork may have moved it
		row.Error, row.DueAt = short(cause), in.now.Add(retryFirst)

		if isUnread(cause) {
			row.DueAt = in.now.Add(unreadFirst)
		}

		if err := in.tx.PutRetry(ctx, &row); err != nil {
			return err
		}
	}

	return nil
}
