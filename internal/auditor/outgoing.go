package auditor

import (
	"context"
	"fmt"
	"slices"
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

// unrecorded reports each transaction that nobody has acknowledged yet. It adds the transfers of these and of
// foreign transactions to the ledger.
func (a *auditor) unrecorded(ctx context.Context) error {
	rows, err := a.store.UnrecordedOutgoing(ctx, a.network.Slug, "", time.Time{})
	if err != nil {
		return err
	}

	rows = slices.DeleteFunc(rows, func(row wallet.Outgoing) bool {
		return row.Block.Height > a.out.At.Height || !walletstate.IsForeign(row) && !walletstate.IsOpen(row)
	})

	coins, err := a.coinsOf(ctx, rows)
	if err != nil {
		return err
	}

	if err := a.foreign(ctx, rows, coins); err != nil {
		return err
	}

	hashes := make([]string, len(rows))
	for i, row := range rows {
		hashes[i] = row.TxHash
	}

	own, err := a.store.OwnTransactions(ctx, a.network.Slug, hashes)
	if err != nil {
		return err
	}

	known := map[string]bool{}

	for _, row := range rows {
		if known[row.TxHash] {
			continue
		}

		known[row.TxHash] = true

		payments, err := a.store.PaymentsByHash(ctx, a.network.Slug, []string{row.TxHash})
		if err != nil {
			return err
		}

		a.ledger.bring(row, payments)

		if again, ours := own[row.TxHash]; walletstate.IsOpen(row) && ours {
			a.reportPaidTwice(row, again)
		} else if walletstate.IsOpen(row) {
			a.reportUnrecorded(row)
		}
	}

	return nil
}

// foreign adds rows that were acknowledged as foreign to the ledger. A transaction has one row for each coin
// of an address that it spent, but its change counts once.
func (a *auditor) foreign(
	ctx context.Context,
	rows []wallet.Outgoing,
	coins map[chain.Outpoint]chain.Coin,
) error {
	type taking struct {
		txHash string
		from   chain.Address
	}

	known := map[taking]bool{}

	for _, row := range rows {
		if !walletstate.IsForeign(row) {
			continue
		}

		var err error
		if row.Fee, err = a.foreignFee(ctx, row); err != nil {
			return err
		}

		a.ledger.foreign(row, coins[row.Outpoint])

		if of := (taking{row.TxHash, row.Address}); !known[of] {
			known[of] = true

			a.ledger.giveBack(row)
		}
	}

	return nil
}

// foreignFee returns the network fee of a foreign transaction, in native base units. If nobody had to
// acknowledge it, because it is tolerated or of a watch-only wallet, its record has no fee, and its block is
// read. If coins are spent, they include the fee.
func (a *auditor) foreignFee(ctx context.Context, row wallet.Outgoing) (chain.Amount, error) {
	sender, ok := a.driver.(chain.Sender)
	if !ok || !row.Fee.IsZero() || row.Outpoint.TxHash != "" || !a.ledger.masters[row.Address] {
		return row.Fee, nil
	}

	status, err := sender.Status(ctx, chain.Signed{TxHash: row.TxHash, From: row.Address, Nonce: row.Nonce})

	return status.Fee, err
}

// coinsOf returns the coins that rows spent, by output.
func (a *auditor) coinsOf(
	ctx context.Context,
	rows []wallet.Outgoing,
) (map[chain.Outpoint]chain.Coin, error) {
	hashes := make([]string, len(rows))
	for i, row := range rows {
		hashes[i] = row.Outpoint.TxHash
	}

	return a.coinsByHash(ctx, hashes)
}

func (a *auditor) reportPaidTwice(row wallet.Outgoing, t wallet.OwnTransaction) {
	a.report(audit.Difference{
		Kind:    audit.PaidTwice,
		Address: row.Address,
		Message: fmt.Sprintf(
			"transaction %s of %s in block %d is a second attempt of our transaction %s, and moved its money again: "+
				"the driver called it dead; see Engine.Acknowledge",
			row.TxHash,
			row.Address,
			row.Block.Height,
			t.ID,
		),
		Records: []audit.Record{
			{Object: "transaction", ID: t.ID, TxHash: row.TxHash, Height: row.Block.Height},
		},
	})
}

func (a *auditor) reportUnrecorded(row wallet.Outgoing) {
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

// isRecorded reports whether a nonce needs no report: its transaction was acknowledged, or unrecorded reports
// it, or it is from before the wallet was on record.
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

// foreign debits the amount that an acknowledged transaction of others took from an address; coin is the
// spent coin, if it spends coins.
func (l *ledger) foreign(row wallet.Outgoing, coin chain.Coin) {
	if row.Outpoint.TxHash != "" {
		l.debitForeign(row, l.native, coin.Amount)
		return
	}

	l.debitForeign(row, l.native, row.Fee)

	for _, t := range row.Transfers {
		if t.From == row.Address && !row.Failed {
			l.debitForeign(row, t.AssetID, t.Amount)
		}
	}
}

// debitForeign debits an amount of an asset at the address of a row. Amounts that left a master wallet are
// the merchant's own, and are kept apart.
func (l *ledger) debitForeign(row wallet.Outgoing, assetID string, amount chain.Amount) {
	if !l.masters[row.Address] {
		l.balanceOf(row.Address, assetID).add(audit.Record{
			Object: "transaction",
			TxHash: row.TxHash,
			Height: row.Block.Height,
			Out:    amount,
		})

		return
	}

	h := chain.Holding{Address: row.Address, AssetID: assetID}
	others := l.others[h]
	others.out = others.out.Add(amount)
	l.others[h] = others
}

// giveBack records the amounts that a foreign transaction of a master wallet left there, such as its change.
func (l *ledger) giveBack(row wallet.Outgoing) {
	for _, t := range row.Transfers {
		if l.masters[row.Address] && t.To == row.Address && !row.Failed {
			h := chain.Holding{Address: row.Address, AssetID: t.AssetID}
			others := l.others[h]
			others.in = others.in.Add(t.Amount)
			l.others[h] = others
		}
	}
}

// bring records the amounts that an unrecorded transaction brought to addresses, except payments.
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
