package auditor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// This file reports transactions of our addresses that are not on record.

// unrecorded reports each transaction that nobody has acknowledged yet, and adds those that are foreign to the ledger.
func (a *auditor) unrecorded(ctx context.Context) error {
	rows, err := a.store.UnrecordedOutgoing(ctx, a.network.Slug, "", time.Time{})
	if err != nil {
		return err
	}

	known := map[string]bool{}

	for _, row := range rows {
		if row.Block.Height > a.out.At.Height {
			continue
		}

		foreign := strings.HasPrefix(row.Acknowledged, wallet.Foreign)
		if foreign {
			a.ledger.foreign(row)
		}

		if !foreign && !walletstate.IsOpen(row) || known[row.TxHash] {
			continue
		}

		known[row.TxHash] = true

		payments, err := a.store.PaymentsByHash(ctx, a.network.Slug, []string{row.TxHash})
		if err != nil {
			return err
		}

		a.ledger.bring(row, payments)

		if !walletstate.IsOpen(row) {
			continue
		}

		a.report(audit.Difference{
			Kind:    audit.ForeignTransaction,
			Address: row.Address,
			Message: fmt.Sprintf(
				"transaction %s of %s in block %d is not on record: the records are older than the chain, or somebody "+
					"else has the key; see Engine.Acknowledge",
				row.TxHash,
				row.Address,
				row.Block.Height,
			),
			Records: []audit.Record{{Object: "transaction", TxHash: row.TxHash, Height: row.Block.Height}},
		})
	}

	return nil
}

// isRecorded reports whether a nonce is that of a transaction which unrecorded reports, or which was acknowledged, or
// from before the wallet was on record.
func (a *auditor) isRecorded(
	ctx context.Context,
	w wallet.Wallet,
	from chain.Address,
	nonce uint64,
) (bool, error) {
	key := chaindata.SpendKey(chain.Spend{Sender: from, Nonce: nonce})

	rows, err := a.store.OutgoingByKey(ctx, a.network.Slug, []string{key})

	return err == nil && len(rows) > 0 && (rows[0].Unrecorded || rows[0].Block.Height <= w.Since), err
}

// foreign debits what an acknowledged transaction of others took from a deposit address. What it took from a master
// wallet is the merchant's own, and coins are debited where they are compared.
func (l *ledger) foreign(row wallet.Outgoing) {
	if l.masters[row.Address] || row.Outpoint.TxHash != "" {
		return
	}

	record := audit.Record{Object: "transaction", TxHash: row.TxHash, Height: row.Block.Height}
	fee := record
	fee.Out = row.Fee
	l.balanceOf(row.Address, l.native).add(fee)

	for _, t := range row.Transfers {
		if t.From == row.Address && !row.Failed {
			taken := record
			taken.Out = t.Amount
			l.balanceOf(row.Address, t.AssetID).add(taken)
		}
	}
}

// bring notes what a transaction that is not on record brought to addresses, but what is a payment there.
func (l *ledger) bring(row wallet.Outgoing, payments []invoice.Payment) {
	for _, t := range row.Transfers {
		isPaid := slices.ContainsFunc(payments, func(p invoice.Payment) bool {
			return p.Status != invoice.Dropped && invoicestate.PaymentKey(p) == invoicestate.KeyOf(t)
		})
		if !row.Failed && !isPaid {
			h := chain.Holding{Address: t.To, AssetID: t.AssetID}
			l.brought[h] = l.brought[h].Add(t.Amount)
		}
	}
}
