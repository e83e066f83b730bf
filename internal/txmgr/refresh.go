package txmgr

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// RefreshBalances reads the balances of wallets at the newest block and stores them, ending the
// reservations that the block fulfils. Without parties it reads every row of the network.
// fault.Unsupported: the driver cannot read balances. fault.Unavailable: the node gave no full answer.
func (o *Manager) RefreshBalances(ctx context.Context, network string, parties ...chain.Party) error {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return err
	}

	if _, ok := driver.(chain.CoinReader); ok {
		return o.sumCoins(ctx, driver.Network(), parties)
	}

	balancer, ok := driver.(chain.Balancer)
	if !ok {
		return fault.New(
			fault.Unsupported, "balances_unsupported",
			"the driver of network %s cannot read balances",
			network,
		)
	}

	holdings, err := o.holdings(ctx, driver.Network(), parties)
	if err != nil || len(holdings) == 0 {
		return err
	}

	head, err := driver.Head(ctx)
	if err != nil {
		return err
	}

	amounts, err := balancer.Balances(ctx, head.Tip, holdings)
	if err != nil {
		return err
	}

	if len(amounts) != len(holdings) {
		return fault.New(
			fault.Unavailable, "balances_incomplete",
			"the driver of network %s answered %d of %d balances",
			network, len(amounts), len(holdings),
		)
	}

	return o.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		return putBalancesTx(ctx, tx, network, head.Tip, holdings, amounts)
	})
}

// HasBalances reports whether a network's balances can be read from the node or summed up from coins.
func (o *Manager) HasBalances(network string) bool {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return false
	}

	_, reads := driver.(chain.Balancer)
	_, coins := driver.(chain.CoinReader)

	return reads || coins
}

// holdings returns every asset of the parties' addresses, or without parties those of all balance rows of
// the network. Sorted by address and asset, to avoid deadlock.
func (o *Manager) holdings(
	ctx context.Context,
	n chain.Network,
	parties []chain.Party,
) ([]chain.Holding, error) {
	var holdings []chain.Holding

	for _, p := range parties {
		for _, a := range n.Assets {
			holdings = append(holdings, chain.Holding{Address: p.Address, AssetID: a.ID})
		}
	}

	if len(parties) == 0 {
		rows, err := o.db.BalancesOf(ctx, n.Slug)
		if err != nil {
			return nil, err
		}

		for _, b := range rows {
			holdings = append(holdings, chain.Holding{Address: b.Address, AssetID: b.AssetID})
		}
	}

	slices.SortFunc(holdings, func(a, b chain.Holding) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.AssetID, b.AssetID))
	})

	return holdings, nil
}

// putBalancesTx stores amounts (base units) read at a block, one per holding. A row that was read at a
// higher block stays.
func putBalancesTx(
	ctx context.Context,
	tx wallet.Tx,
	network string,
	at chain.Ref,
	holdings []chain.Holding,
	amounts []chain.Amount,
) error {
	for i, h := range holdings {
		b, found, err := tx.BalanceForUpdate(ctx, network, h.Address, h.AssetID)
		if err != nil {
			return err
		}

		if !found {
			b = wallet.Balance{Network: network, Address: h.Address, AssetID: h.AssetID}
		}

		if !b.Update(at, amounts[i]) {
			continue
		}

		if err := tx.PutBalance(ctx, &b); err != nil {
			return err
		}
	}

	return nil
}

// sumCoins stores the balances of wallets as the sum of their coins in blocks, up to the last indexed
// block. Coins that a waiting transaction of ours spends count until its block; what it may take of them
// is reserved. Without parties it covers every balance row of the network.
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

// sumCoinsTx stores the balance of one wallet as the sum of its mature coins; create makes a missing row.
func sumCoinsTx(
	ctx context.Context,
	tx wallet.Tx,
	network string,
	address chain.Address,
	assetID string,
	create bool,
) error {
	cursor, _, err := tx.Cursor(ctx, network) // before the coins, which may be newer but not older
	if err != nil {
		return err
	}

	b, found, err := tx.BalanceForUpdate(ctx, network, address, assetID)
	if err != nil || !found && !create {
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
		if c.Height > 0 && c.Mature(cursor.At.Height) {
			sum = sum.Add(c.Amount)
		}
	}

	was := b
	if !b.Update(cursor.At, sum) {
		return nil
	}

	unchanged := was.At.Hash == b.At.Hash && was.OnChain == sum &&
		len(was.Reservations) == len(b.Reservations)
	if found && unchanged {
		return nil
	}

	return tx.PutBalance(ctx, &b)
}
