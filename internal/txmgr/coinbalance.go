package txmgr

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// sumCoins stores the balances of wallets as the sum of their coins in blocks, up to the last indexed block.
// A coin that a waiting transaction of ours spends counts until the transaction's block; the amount that it
// may take is reserved. Without parties it covers every balance row of the network.
func (o *Manager) sumCoins(ctx context.Context, n chain.Network, parties []chain.Party) error {
	native, _ := n.Native()

	var addresses []chain.Address
	for _, p := range parties {
		addresses = append(addresses, p.Address)
	}

	if len(parties) == 0 {
		rows, err := o.db.BalancesOf(ctx, n.Slug)
		if err != nil {
			return err
		}

		for _, b := range rows {
			addresses = append(addresses, b.Address)
		}
	}

	if len(addresses) == 0 {
		return nil
	}

	slices.Sort(addresses) // to avoid deadlock

	return o.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		for _, address := range slices.Compact(slices.Clone(addresses)) {
			if err := sumCoinsTx(ctx, tx, n.Slug, address, native.ID, true); err != nil {
				return err
			}
		}

		return nil
	})
}

// sumCoinsTx stores the balance of one wallet as the sum of its mature coins; create makes a missing row. It
// locks the row first, and every change of the wallet's coins locks it too, so that cursor and coins match.
// No node is asked that may lag. So the sum counts at any height, also on a lower branch.
func sumCoinsTx(
	ctx context.Context,
	tx wallet.Tx,
	network string,
	address chain.Address,
	assetID string,
	create bool,
) error {
	b, found, err := tx.BalanceForUpdate(ctx, network, address, assetID)
	if err != nil || !found && !create {
		return err
	}

	cursor, _, err := tx.Cursor(ctx, network)
	if err != nil {
		return err
	}

	if !found {
		b = wallet.Balance{Network: network, Address: address, AssetID: assetID}
	}

	coins, err := tx.Coins(ctx, network, address)
	if err != nil {
		return err
	}

	var sum chain.Amount

	for _, c := range coins {
		if c.Height > 0 && walletstate.Mature(c, cursor.At.Height) {
			sum = sum.Add(c.Amount)
		}
	}

	was := b
	walletstate.SetBalance(&b, cursor.At, sum)

	if found && isSameBalance(was, b) {
		return nil
	}

	return tx.PutBalance(ctx, &b)
}
