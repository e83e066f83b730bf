package txmgr

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/follow"
)

// This file finds transactions of ours with two attempts in blocks. The network's driver called one of them
// dead, and it was not: its payment left the wallet a second time.

// freezePaidTwiceTx marks the rows of a batch that are a second attempt of a transaction of ours. It freezes
// their wallets, because the driver may be wrong about more transactions. keys are the rows of our own
// attempts; own maps each hash to its transaction.
func (o *Manager) freezePaidTwiceTx(
	ctx context.Context,
	tx wallet.Tx,
	b follow.Batch,
	rows map[string]wallet.Outgoing,
	own map[string]wallet.OwnTransaction,
	keys []string,
	parties PartyLookup,
) error {
	keys = slices.DeleteFunc(keys, func(key string) bool { return rows[key].Failed || isNonce(rows[key]) })

	executed, err := o.executed(ctx, tx, b, rows, own, keys)
	if err != nil {
		return err
	}

	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(rows[a].Block.Height, rows[b].Block.Height), cmp.Compare(a, b))
	})

	for _, key := range keys {
		row := rows[key]

		first, resent := executed[own[row.TxHash].ID]
		if !resent {
			continue
		}

		if first == "" {
			executed[own[row.TxHash].ID] = row.TxHash
		}

		if first == "" || first == row.TxHash {
			continue
		}

		ours, err := parties(ctx, []chain.Address{row.Address})
		if err != nil {
			return err
		}

		row.Unrecorded, row.Transfers = true, transfersOf(b, row.TxHash)
		rows[key] = row

		o.config.Log.ErrorContext(
			ctx, "a wallet is frozen: two attempts of one transaction are in blocks; see Engine.Acknowledge",
			"network", row.Network, "wallet", string(row.Address), "transaction", own[row.TxHash].ID,
			"tx", row.TxHash, "first", first,
		)

		if err := o.freezeWalletTx(ctx, tx, row, ours[row.Address], wallet.FrozenPaidTwice); err != nil {
			return err
		}
	}

	return nil
}

// executed returns, for each transaction with several attempts, the hash of the attempt that blocks before
// the batch executed; "" if they executed none.
func (o *Manager) executed(
	ctx context.Context,
	tx wallet.Tx,
	b follow.Batch,
	rows map[string]wallet.Outgoing,
	own map[string]wallet.OwnTransaction,
	keys []string,
) (map[string]string, error) {
	ids := map[string]bool{}
	for _, key := range keys {
		ids[own[rows[key].TxHash].ID] = true
	}

	if len(ids) == 0 {
		return nil, nil
	}

	list, err := tx.TransactionsByID(ctx, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return nil, err
	}

	executed, attemptOf := map[string]string{}, map[string]string{}

	for _, t := range list {
		if len(t.Attempts) < 2 {
			continue
		}

		executed[t.ID] = ""
		for _, a := range t.Attempts {
			attemptOf[a.Signed.TxHash] = t.ID
		}
	}

	if len(attemptOf) == 0 {
		return nil, nil
	}

	stored, err := tx.OutgoingByHash(ctx, b.Network.Slug, slices.Sorted(maps.Keys(attemptOf)))
	if err != nil {
		return nil, err
	}

	for _, row := range stored {
		now, again := rows[row.Key]
		left := b.Rewound && row.Block.Height > b.ForkedFrom.Height && !again
		replaced := again && now.TxHash != row.TxHash

		if !row.Failed && !row.Unrecorded && !left && !replaced {
			executed[attemptOf[row.TxHash]] = row.TxHash
		}
	}

	return executed, nil
}

// isNonce reports whether the row is of a sender's nonce, which only one transaction can use.
func isNonce(row wallet.Outgoing) bool {
	return row.Key == chaindata.SpendKey(chain.Spend{Sender: row.Address, Nonce: row.Nonce})
}
