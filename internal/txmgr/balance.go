package txmgr

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// The rules of a Balance, pure. Reserved is always the sum of Reservations.

// TrackTx makes the balance rows of a wallet, one per asset of its network, so that they are read
// from now on and shown to the owner. Doing it again changes nothing.
func (o *Manager) TrackTx(
	ctx context.Context,
	tx wallet.Tx,
	owner event.Owner,
	network string,
	party chain.Party,
) error {
	n, ok := o.registry.Network(network)
	if !ok {
		return unknownNetwork(network)
	}

	for _, a := range n.Assets {
		b, found, err := tx.Balance(ctx, network, party.Address, a.ID)
		if err != nil {
			return err
		}

		if found && b.Owner == owner {
			continue
		}

		if !found {
			b = wallet.Balance{Network: network, Address: party.Address, AssetID: a.ID}
		}

		b.Owner = owner
		if err := tx.PutBalance(ctx, &b); err != nil {
			return err
		}
	}

	return nil
}

// ReserveTx promises an amount of a wallet's balance to an object (a payout, a transaction); doing
// it again for the same object sets the amount anew. What is missing is fault.State with code
// insufficient_balance. A promise ends when a balance was read at a block that includes the
// transaction: the one with that id, or the one of the payout with that id.
func (o *Manager) ReserveTx(
	ctx context.Context,
	tx wallet.Tx,
	owner event.Owner,
	network string,
	address chain.Address,
	assetID, objectID string,
	amount chain.Amount,
) error {
	b, found, err := tx.BalanceForUpdate(ctx, network, address, assetID)
	if err != nil {
		return err
	}

	if !found {
		if amount.IsZero() {
			return nil
		}

		b = wallet.Balance{Network: network, Address: address, AssetID: assetID}
	}

	if b.Owner == (event.Owner{}) {
		b.Owner = owner
	}

	if err := b.Reserve(objectID, amount); err != nil {
		return err
	}

	return tx.PutBalance(ctx, &b)
}

// ReleaseTx gives the promise to an object back; without one it does nothing.
func (o *Manager) ReleaseTx(
	ctx context.Context,
	tx wallet.Tx,
	network string,
	address chain.Address,
	assetID, objectID string,
) error {
	b, found, err := tx.BalanceForUpdate(ctx, network, address, assetID)
	if err != nil || !found {
		return err
	}

	if !slices.ContainsFunc(
		b.Reservations, func(r wallet.Reservation) bool { return r.ObjectID == objectID && !r.Released },
	) {
		return nil
	}

	b.Release(objectID)

	return tx.PutBalance(ctx, &b)
}

// spendTx books the inclusion of a transaction, or with height 0 its retraction, with the balances
// it is paid from. The transaction is the first of the rows; those that it carries follow, each
// with a promise of its own.
func (o *Manager) spendTx(
	ctx context.Context,
	tx wallet.Tx,
	n chain.Network,
	rows []wallet.Transaction,
	height uint64,
) error {
	native, _ := n.Native()
	t := rows[0]

	payers := []chain.Address{t.Order.From.Address}
	if t.Order.FeePayer != nil && t.Order.FeePayer.Address != t.Order.From.Address {
		payers = append(payers, t.Order.FeePayer.Address)
	}

	slices.Sort(payers)

	for _, payer := range payers {
		// What a transaction carries spends the same assets as itself.
		// one order of locks for everybody
		for _, assetID := range slices.Sorted(maps.Keys(spends(t, t.ID, payer, native.ID))) {
			b, found, err := tx.BalanceForUpdate(ctx, n.Slug, payer, assetID)
			if err != nil {
				return err
			}

			if !found {
				continue
			}

			for _, row := range rows {
				object := row.ID
				if row.Kind == wallet.Payout &&
					!slices.ContainsFunc(
						b.Reservations, func(r wallet.Reservation) bool { return r.ObjectID == row.ID },
					) {
					object = row.ObjectID // a payout has one transaction and may reserve in its own name
				}

				b.Spend(object, height, spends(t, row.ID, payer, native.ID)[assetID])
			}

			if err := tx.PutBalance(ctx, &b); err != nil {
				return err
			}
		}
	}

	return nil
}

// HasBalances reports whether the balances of a network's wallets can be known: read from the node,
// or added up from coins.
func (o *Manager) HasBalances(network string) bool {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return false
	}

	_, reads := driver.(chain.Balancer)
	_, coins := driver.(chain.CoinReader)

	return reads || coins
}

// sumCoins writes the balances of wallets as the sum of their coins in blocks, as of the last
// block that was booked. Coins that a waiting transaction of ours spends count until its block;
// what it may take of them is reserved.
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

	slices.Sort(addresses) // one order of locks for everybody

	return o.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		for _, address := range slices.Compact(slices.Clone(addresses)) {
			if err := sumCoinsTx(ctx, tx, n.Slug, address, native.ID, true); err != nil {
				return err
			}
		}

		return nil
	})
}

// sumCoinsTx writes the balance of one wallet, and makes its row if that is wanted.
func sumCoinsTx(
	ctx context.Context,
	tx wallet.Tx,
	network string,
	address chain.Address,
	assetID string,
	create bool,
) error {
	cursor, _, err := tx.Cursor(ctx, network) // before the coins, which may be newer but never older
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
		if c.Height > 0 {
			sum = sum.Add(c.Amount)
		}
	}

	was := b
	if !b.Read(cursor.At, sum) ||
		found && was.At.Hash == b.At.Hash && was.OnChain == sum &&
			len(was.Reservations) == len(b.Reservations) {
		return nil
	}

	return tx.PutBalance(ctx, &b)
}

// RefreshBalances reads the balances of wallets at the newest block and writes their rows, ending
// the promises that the block shows fulfilled. Without parties it reads every row of the network
// again. A network whose driver cannot read balances is fault.Unsupported; a node without an answer
// is fault.Unavailable.
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

	var holdings []chain.Holding

	for _, p := range parties {
		for _, a := range driver.Network().Assets {
			holdings = append(holdings, chain.Holding{Address: p.Address, AssetID: a.ID})
		}
	}

	if len(parties) == 0 {
		rows, err := o.db.BalancesOf(ctx, network)
		if err != nil {
			return err
		}

		for _, b := range rows {
			holdings = append(holdings, chain.Holding{Address: b.Address, AssetID: b.AssetID})
		}
	}

	if len(holdings) == 0 {
		return nil
	}

	slices.SortFunc(holdings, func(a, b chain.Holding) int { // one order of locks for everybody
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.AssetID, b.AssetID))
	})

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
		for i, h := range holdings {
			b, found, err := tx.BalanceForUpdate(ctx, network, h.Address, h.AssetID)
			if err != nil {
				return err
			}

			if !found {
				b = wallet.Balance{Network: network, Address: h.Address, AssetID: h.AssetID}
			}

			if !b.Read(head.Tip, amounts[i]) {
				continue
			}

			if err := tx.PutBalance(ctx, &b); err != nil {
				return err
			}
		}

		return nil
	})
}

// spends returns what the transaction takes at most from an address for itself or for one that it
// carries, per asset id: the outputs, unless they come out of a coin that it lifts, and the network
// fee for whoever pays that.
func spends(
	t wallet.Transaction,
	transactionID string,
	from chain.Address,
	native string,
) map[string]chain.Amount {
	out := map[string]chain.Amount{}

	outputs, maxFee := t.Part(t.LastAttempt(), transactionID)
	if from == t.Order.From.Address && t.Order.Bumps == nil {
		for _, o := range outputs {
			out[o.AssetID] = out[o.AssetID].Add(o.Amount)
		}
	}

	payer := t.Order.From.Address
	if t.Order.FeePayer != nil {
		payer = t.Order.FeePayer.Address
	}

	if from == payer {
		out[native] = out[native].Add(maxFee)
	}

	return out
}
