package txmgr

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// RecordOutgoingTx stores the spends of our addresses in the blocks of a batch, in the transaction that moves
// the network's cursor: one row per nonce, coin or signature. A fork deletes the rows above it that the new
// blocks do not hold. A block that is read again deletes its own rows likewise, and a freeze that only these
// rows caused ends. It must run before ApplyForkTx, which reads the rows. It is idempotent.
//
// Spends of payers are recorded too, without an address, if the payer's transaction pays a master wallet or
// if transactions of ours depend on it. When another transaction makes such a spend, they are dead.
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

	if err := o.withdrawTx(ctx, tx, b); err != nil {
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
) (map[string]wallet.Outgoing, error) { // spec D11.9
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

	owners, err := coinOwners(ctx, tx, b, coinHashes, parties)
	if err != nil {
		return nil, err
	}

	watched, err := parentSpends(ctx, tx, b, len(coinHashes) > 0)
	if err != nil {
		return nil, err
	}

	if err := addFunding(ctx, b, parties, len(coinHashes) > 0, watched); err != nil {
		return nil, err
	}

	rows := map[string]wallet.Outgoing{}

	for _, block := range b.Blocks {
		for _, spend := range block.Spent {
			owner := ours[spend.Sender].Address
			if spend.Outpoint.TxHash != "" {
				owner = owners[spend.Outpoint]
			}

			if owner != "" || watched[chaindata.SpendKey(spend)] {
				rows[chaindata.SpendKey(spend)] = walletstate.NewOutgoing(
					b.Network.Slug,
					owner,
					spend,
					block.Ref,
				)
			}
		}
	}

	return rows, nil
}

// addFunding adds the keys of the spends of transactions that pay a master wallet. If after a fork the payer
// spends the money otherwise, the wallet's transactions that depend on the payment are dead.
func addFunding(
	ctx context.Context,
	b follow.Batch,
	parties PartyLookup,
	coins bool,
	keys map[string]bool,
) error {
	if !coins {
		return nil
	}

	paid := map[chain.Address]map[string]bool{} // hashes by recipient

	for _, block := range b.Blocks {
		for _, t := range block.Transfers {
			if paid[t.To] == nil {
				paid[t.To] = map[string]bool{}
			}

			paid[t.To][t.TxHash] = true
		}
	}

	ours, err := parties(ctx, slices.Sorted(maps.Keys(paid)))
	if err != nil {
		return err
	}

	funding := map[string]bool{}
	for address := range ours {
		maps.Copy(funding, paid[address])
	}

	for _, block := range b.Blocks {
		for _, spend := range block.Spent {
			if funding[spend.By] {
				keys[chaindata.SpendKey(spend)] = true
			}
		}
	}

	return nil
}

// coinOwners returns the owners of our coins among the outputs of transactions: indexed coins, and coins that
// a batch makes and spends itself.
func coinOwners(
	ctx context.Context,
	tx wallet.Tx,
	b follow.Batch,
	hashes map[string]bool,
	parties PartyLookup,
) (map[chain.Outpoint]chain.Address, error) {
	owners := map[chain.Outpoint]chain.Address{}
	if len(hashes) == 0 {
		return owners, nil
	}

	recipients := map[chain.Address]bool{}

	for _, block := range b.Blocks {
		for _, t := range block.Transfers {
			if hashes[t.TxHash] {
				owners[chain.Outpoint{TxHash: t.TxHash, Vout: t.Index}] = t.To
				recipients[t.To] = true
			}
		}
	}

	ours, err := parties(ctx, slices.Sorted(maps.Keys(recipients)))
	if err != nil {
		return nil, err
	}

	maps.DeleteFunc(owners, func(_ chain.Outpoint, owner chain.Address) bool {
		_, known := ours[owner]
		return !known
	})

	coins, err := tx.CoinsOf(ctx, b.Network.Slug, slices.Sorted(maps.Keys(hashes)))
	if err != nil {
		return nil, err
	}

	for _, coin := range coins {
		owners[coin.Outpoint] = coin.Owner.Address
	}

	return owners, nil
}

// parentSpends returns the keys of the spends on which bumps and payouts of ours depend. Each of them
// reserves the output that it spends, which is in no block, or in a block that a fork removes.
func parentSpends(ctx context.Context, tx wallet.Tx, b follow.Batch, coins bool) (map[string]bool, error) {
	keys := map[string]bool{}
	if !coins {
		return keys, nil
	}

	waiting, err := tx.UnconfirmedCoins(ctx, b.Network.Slug)
	if err != nil {
		return nil, err
	}

	if b.Rewound { // the fork is not applied to the coins yet
		above, err := tx.CoinsAbove(ctx, b.Network.Slug, b.ForkedFrom.Height)
		if err != nil {
			return nil, err
		}

		waiting = append(waiting, above...)
	}

	ids := map[string]bool{}

	for _, coin := range waiting {
		if coin.ReservedBy != "" {
			ids[coin.ReservedBy] = true
		}
	}

	if len(ids) == 0 {
		return keys, nil
	}

	resting, err := tx.TransactionsByID(ctx, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return nil, err
	}

	for _, t := range resting {
		for _, a := range t.Attempts {
			for _, spend := range a.Signed.UnconfirmedParents {
				keys[chaindata.SpendKey(spend)] = true
			}
		}
	}

	return keys, nil
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
