package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/settlement"
)

// findMasters finds the master wallets of the named settlements.
func (a *acknowledgement) findMasters(ctx context.Context) error {
	found, err := a.config.Store.SettlementsByID(ctx, a.ids)
	if err != nil {
		return err
	}

	a.masters = map[string]chain.Party{}

	for _, s := range found {
		settings, err := a.records().SettlementSettings(ctx, s.Owner.AccountID)
		if err != nil {
			return err
		}

		if a.masters[s.ID], err = a.Transactions.MasterWallet(ctx, a.network, settings.Index); err != nil {
			return err
		}
	}

	return nil
}

// waitingSettlements returns the settlements among ids that have not ended, and failed ones whose own coin
// the transaction spent. An id that names nothing is fault.Invalid.
func (a *acknowledgement) waitingSettlements(ctx context.Context, tx Tx, ids []string) ([]string, error) {
	found, err := tx.SettlementsByID(ctx, ids)
	if err != nil {
		return nil, err
	}

	if len(found) != len(ids) {
		return nil, fault.New(
			fault.Invalid,
			"acknowledgement_invalid",
			"%s: not all of these are payouts, refunds or settlements, or were paid coin by the transaction",
			strings.Join(ids, ", "),
		)
	}

	var waiting []string

	for _, s := range found {
		switch s.Status {
		case settlement.Pending, settlement.Held, settlement.Releasing:
			if err := a.checkTook(ctx, tx, s); err != nil {
				return nil, err
			}

			waiting = append(waiting, s.ID)
		case settlement.Released:
			return nil, mismatch(
				"%s was released by its own transaction %s, not by %s",
				s.ID,
				s.SweepTx,
				a.txHash,
			)
		case settlement.Failed:
			spent, err := a.spentCoin(ctx, tx, s)
			if err != nil {
				return nil, err
			}

			if spent {
				waiting = append(waiting, s.ID)
			}
		case settlement.Reverted:
			// The row only names it.
		}
	}

	return waiting, nil
}

// spentCoin reports whether the transaction spent the coin of a settlement that an operator may retry. If so,
// it released the settlement: it had failed before a fork, and succeeded after it.
func (a *acknowledgement) spentCoin(ctx context.Context, tx Tx, s settlement.Settlement) (bool, error) {
	if a.foreign || s.Reason == settlement.PaymentOrphaned || s.FailedFor != "" {
		return false, nil
	}

	p, err := tx.PaymentByID(ctx, s.PaymentID)
	if err != nil || p.TxHash == "" {
		return false, err
	}

	rows, err := a.rows(ctx, tx)

	return slices.ContainsFunc(rows, func(row wallet.Outgoing) bool {
		return row.Outpoint == chain.Outpoint{TxHash: p.TxHash, Vout: p.TxIndex}
	}), err
}

// checkTook refuses a settlement whose payment came after the transaction: the transaction took other money.
// A payment without a transaction may have come long before the block in which it was found.
func (a *acknowledgement) checkTook(ctx context.Context, tx Tx, s settlement.Settlement) error {
	if a.foreign {
		return nil
	}

	p, err := tx.PaymentByID(ctx, s.PaymentID)
	if err != nil {
		return err
	}

	rows, err := a.rows(ctx, tx)
	if err != nil {
		return err
	}

	coin := chain.Outpoint{TxHash: p.TxHash, Vout: p.TxIndex}
	if len(rows) > 0 && rows[0].Outpoint.TxHash != "" &&
		!slices.ContainsFunc(rows, func(row wallet.Outgoing) bool { return row.Outpoint == coin }) {
		return mismatch("transaction %s did not spend the coin of settlement %s", a.txHash, s.ID)
	}

	if p.TxHash != "" && p.Block.Height > a.status.Block.Height {
		return mismatch(
			"the payment of settlement %s is in block %d, above block %d of transaction %s: that took other money",
			s.ID,
			p.Block.Height,
			a.status.Block.Height,
			a.txHash,
		)
	}

	return nil
}
