package txmgr

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/follow"
)

// RecordOutgoingTx stores what the blocks of a batch took from our addresses, in the transaction that moves
// the network's cursor: one row per nonce, coin or signature. A fork deletes the rows above it that the new
// blocks do not hold. Coins must be indexed first (IndexCoinsTx). It is idempotent.
func (o *Manager) RecordOutgoingTx(
	ctx context.Context,
	tx wallet.Tx,
	b follow.Batch,
	parties PartyLookup,
) error {
	rows, err := outgoingRows(ctx, tx, b, parties)
	if err != nil {
		return err
	}

	stored, err := storedOutgoing(ctx, tx, b, rows)
	if err != nil {
		return err
	}

	if err := o.freezeTx(ctx, tx, b, rows, stored, parties); err != nil {
		return err
	}

	for _, key := range slices.Sorted(maps.Keys(stored)) {
		if _, again := rows[key]; !again && b.Rewound {
			if err := tx.DeleteOutgoing(ctx, b.Network.Slug, key); err != nil {
				return err
			}
		}
	}

	for _, key := range slices.Sorted(maps.Keys(rows)) {
		row, was := rows[key], stored[key]

		row.Version = was.Version
		if reflect.DeepEqual(row, was) {
			continue
		}

		if err := tx.PutOutgoing(ctx, &row); err != nil {
			return err
		}
	}

	return nil
}

// outgoingRows returns the rows that the blocks of a batch make, by key.
func outgoingRows(
	ctx context.Context,
	tx wallet.Tx,
	b follow.Batch,
	parties PartyLookup,
) (map[string]wallet.Outgoing, error) {
	senders, coinHashes := map[chain.Address]bool{}, map[string]bool{}

	for _, block := range b.Blocks {
		for _, spend := range block.Spent {
			if spend.Outpoint.TxHash != "" {
				coinHashes[spend.Outpoint.TxHash] = true
			} else {
				senders[spend.Sender] = true
			}
		}
	}

	ours, err := parties(ctx, slices.Sorted(maps.Keys(senders)))
	if err != nil {
		return nil, err
	}

	coins, err := tx.CoinsOf(ctx, b.Network.Slug, slices.Sorted(maps.Keys(coinHashes)))
	if err != nil {
		return nil, err
	}

	owners := make(map[chain.Outpoint]chain.Address, len(coins))
	for _, coin := range coins {
		owners[coin.Outpoint] = coin.Owner.Address
	}

	rows := map[string]wallet.Outgoing{}

	for _, block := range b.Blocks {
		for _, spend := range block.Spent {
			owner := ours[spend.Sender].Address
			if spend.Outpoint.TxHash != "" {
				owner = owners[spend.Outpoint]
			}

			if owner != "" {
				rows[spend.Key()] = wallet.NewOutgoing(b.Network.Slug, owner, spend, block.Ref)
			}
		}
	}

	return rows, nil
}

// storedOutgoing returns the stored rows that a batch may change, by key.
func storedOutgoing(
	ctx context.Context,
	tx wallet.Tx,
	b follow.Batch,
	rows map[string]wallet.Outgoing,
) (map[string]wallet.Outgoing, error) {
	list, err := tx.OutgoingByKey(ctx, b.Network.Slug, slices.Sorted(maps.Keys(rows)))
	if err != nil {
		return nil, err
	}

	if b.Rewound {
		above, err := tx.OutgoingAbove(ctx, b.Network.Slug, b.ForkedFrom.Height)
		if err != nil {
			return nil, err
		}

		list = append(list, above...)
	}

	stored := make(map[string]wallet.Outgoing, len(list))
	for _, row := range list {
		stored[row.Key] = row
	}

	return stored, nil
}
