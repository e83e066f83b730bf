package txmgr

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// ApplyForkTx applies a fork to the transactions of a network, in the transaction that moves its cursor and
// after RecordOutgoingTx. Every transaction in a block above the common one becomes due at once. A
// transaction without a row any more is retracted, and so is a Confirmed one whose row is in another block.
// An Included one whose row moved stays Included: the next look records its new block. Without a fork in the
// batch it does nothing.
func (o *Manager) ApplyForkTx(ctx context.Context, tx wallet.Tx, b follow.Batch) error {
	if !b.Rewound {
		return nil
	}

	driver, err := o.registry.Driver(b.Network.Slug)
	if err != nil {
		return err
	}

	now := o.now()

	watched, err := tx.DueTransactions(ctx, b.Network.Slug, now.Add(watchFor), 0)
	if err != nil {
		return err
	}

	for _, t := range watched {
		if t.Block.IsZero() || t.Block.Height <= b.ForkedFrom.Height {
			continue
		}

		gone, err := o.blockLost(ctx, tx, driver, t, b)
		if err != nil {
			return err
		}

		if gone {
			o.logLostBlock(ctx, t)

			d := &walletWorker{Manager: o, network: driver.Network(), party: t.Order.From}
			if _, err := d.moveTx(ctx, tx, t, walletstate.Retract); err != nil {
				return err
			}

			if t, err = tx.Transaction(ctx, t.ID); err != nil {
				return err
			}
		}

		t.DueAt = now // the write alone voids reads from before the fork; see recordInclusion
		if err := tx.PutTransaction(ctx, &t); err != nil {
			return err
		}
	}

	return nil
}

// RewindBalancesTx marks balances that nodes gave above a fork to be read again, even from a lower branch. It
// runs in the transaction that moves the cursor, after the payments. It does nothing without a fork in the
// batch, and on networks that spend outputs: there the sum of the coins follows the chain.
func (o *Manager) RewindBalancesTx(ctx context.Context, tx wallet.Tx, b follow.Batch) error {
	if !b.Rewound {
		return nil
	}

	driver, err := o.registry.Driver(b.Network.Slug)
	if err != nil {
		return err
	}

	if _, ok := driver.(chain.CoinReader); ok {
		return nil
	}

	rows, err := tx.BalancesOf(ctx, b.Network.Slug)
	if err != nil {
		return err
	}

	slices.SortFunc(rows, compareBalances) // to avoid deadlock

	for _, row := range rows {
		if row.At.Height <= b.ForkedFrom.Height {
			continue
		}

		locked, found, err := tx.BalanceForUpdate(ctx, row.Network, row.Address, row.AssetID)
		if err != nil {
			return err
		}

		if !found || !walletstate.RewindBalance(&locked, b.ForkedFrom.Height) {
			continue
		}

		if err := tx.PutBalance(ctx, &locked); err != nil {
			return err
		}
	}

	return nil
}

// blockLost reports whether a fork removed the block of a transaction from the chain: its row is gone, or for
// a Confirmed one it is in another block. Where no blocks are read, the batch has to prove it.
func (o *Manager) blockLost(
	ctx context.Context,
	tx wallet.Tx,
	driver chain.Driver,
	t wallet.Transaction,
	b follow.Batch,
) (bool, error) {
	if !o.readsBlocks(driver) {
		return blockGone(t, b.Blocks), nil
	}

	row, err := AttemptRow(ctx, tx, t)
	if err != nil {
		return false, err
	}

	return row.TxHash == "" || t.State == wallet.Confirmed && row.Block.Hash != t.Block.Hash, nil
}

// blockGone reports whether canonical blocks prove that the transaction's block left the chain and that
// none of them includes an Included transaction again.
func blockGone(t wallet.Transaction, canonical []chain.Block) bool {
	displaced := false

	for _, b := range canonical {
		if b.Hash == t.Block.Hash {
			return false
		}

		displaced = displaced || b.Height == t.Block.Height
		if t.State == wallet.Included &&
			slices.ContainsFunc(
				b.Transfers,
				func(m chain.Transfer) bool { return walletstate.AttemptIndex(&t, m.TxHash) >= 0 },
			) {
			return false
		}
	}

	return displaced
}
