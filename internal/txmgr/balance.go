package txmgr

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// TrackTx stores a balance row per asset of the network for a wallet, so that RefreshBalances reads them
// and their owner sees them. It is idempotent. An unknown network is fault.NotFound.
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

// ReserveTx reserves an amount (base units) of a wallet's balance for an object: a payout or a
// transaction. Reserving again for the object replaces the amount. A balance that is too low is
// fault.State with code insufficient_balance. The reservation ends when the balance is read at a block
// that includes the object's transaction.
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

	if err := walletstate.Reserve(&b, objectID, amount); err != nil {
		return err
	}

	return tx.PutBalance(ctx, &b)
}

// UnreserveTx releases the reservation of an object; without one it does nothing.
func (o *Manager) UnreserveTx(
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

	unreleased := func(r wallet.Reservation) bool { return r.ObjectID == objectID && !r.Unreserved }
	if !slices.ContainsFunc(b.Reservations, unreleased) {
		return nil
	}

	walletstate.Unreserve(&b, objectID)

	return tx.PutBalance(ctx, &b)
}

// spendTx records the height at which a transaction was included (0: it was retracted) in the balances that
// pay it. rows are the transaction and then its batch members, each with its own reservation.
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
		// Batch members spend the same assets. Sorted by asset to avoid deadlock.
		for _, assetID := range slices.Sorted(maps.Keys(spends(t, t.ID, payer, native.ID))) {
			b, found, err := tx.BalanceForUpdate(ctx, n.Slug, payer, assetID)
			if err != nil {
				return err
			}

			if !found {
				continue
			}

			for _, row := range rows {
				own := func(r wallet.Reservation) bool { return r.ObjectID == row.ID }

				object := row.ID
				if row.Kind == wallet.Payout && !slices.ContainsFunc(b.Reservations, own) {
					object = row.ObjectID // a payout has one transaction and may reserve by its own id
				}

				walletstate.Debit(&b, object, height, spends(t, row.ID, payer, native.ID)[assetID])
			}

			if err := tx.PutBalance(ctx, &b); err != nil {
				return err
			}
		}
	}

	return nil
}

// spends returns the most that a transaction or one of its batch members takes from an address, in base units
// per asset id. That is its outputs, unless the bumped payment or a stray pays them, and the network fee if
// the address pays it.
func spends(
	t wallet.Transaction,
	transactionID string,
	from chain.Address,
	native string,
) map[string]chain.Amount {
	out := map[string]chain.Amount{}

	outputs, maxFee := walletstate.BatchShare(t, walletstate.LastAttempt(&t), transactionID)
	if from == t.Order.From.Address && t.Order.Bumps == nil && t.Order.Recovers == nil {
		for _, o := range outputs {
			if chaindata.MovesCoin(o) {
				out[o.AssetID] = out[o.AssetID].Add(o.Amount)
			}
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

// RefreshBalances reads the balances of wallets at the newest block and stores them. It ends the reservations
// that the block fulfils. Without parties it reads every row of the network. fault.Unsupported: the driver
// cannot read balances. fault.Unavailable: the node gave no full answer.
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
		return balancesUnsupported(network)
	}

	rows, err := o.balanceRows(ctx, driver.Network(), parties)
	if err != nil || len(rows) == 0 {
		return err
	}

	holdings := make([]chain.Holding, len(rows))
	for i, b := range rows {
		holdings[i] = chain.Holding{Address: b.Address, AssetID: b.AssetID}
	}

	head, err := driver.Head(ctx)
	if err != nil {
		return err
	}

	amounts, err := balancer.Balances(ctx, head.Tip, holdings)
	if err = chaindata.WithoutProvisional(err); err != nil && !isDisputed(err) {
		return err
	}

	if len(amounts) != len(holdings) {
		return balancesIncomplete(network, len(amounts), len(holdings))
	}

	if err != nil {
		o.config.Log.WarnContext(
			ctx, "balances stay as they are on record", "network", network, "error", publicText(err),
		)

		rows, holdings, amounts = withoutDisputed(err, rows, holdings, amounts)
	}

	changed := false
	for i, b := range rows {
		changed = changed || differs(b, head.Tip, amounts[i])
	}

	if !changed {
		return nil // stored by another process, or of the same block
	}

	return o.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		return putBalancesTx(ctx, tx, network, head.Tip, holdings, amounts)
	})
}

// isDisputed reports whether the only reason for unreadable balances is that no two nodes agree about them.
func isDisputed(err error) bool {
	unreadable, ok := errors.AsType[*chain.UnreadableError](err)

	return ok && !slices.ContainsFunc(unreadable.Holdings, func(u chain.UnreadableHolding) bool {
		return !errors.Is(u.Err, chain.ErrNotAgreed)
	})
}

// withoutDisputed returns the rows and holdings that nodes agree about.
func withoutDisputed(
	err error,
	rows []wallet.Balance,
	holdings []chain.Holding,
	amounts []chain.Amount,
) (agreedRows []wallet.Balance, agreedHoldings []chain.Holding, agreedAmounts []chain.Amount) {
	unreadable, _ := errors.AsType[*chain.UnreadableError](err)

	disputed := map[int]bool{}
	for _, u := range unreadable.Holdings {
		disputed[u.Index] = true
	}

	for i := range rows {
		if !disputed[i] {
			agreedRows = append(agreedRows, rows[i])
			agreedHoldings = append(agreedHoldings, holdings[i])
			agreedAmounts = append(agreedAmounts, amounts[i])
		}
	}

	return agreedRows, agreedHoldings, agreedAmounts
}

// differs reports whether an amount (base units) read at a block changes a row.
func differs(row wallet.Balance, at chain.Ref, amount chain.Amount) bool {
	updated := row

	return walletstate.UpdateBalance(&updated, at, amount) && !isSameBalance(row, updated)
}

// isSameBalance reports whether reading a balance again changed nothing.
func isSameBalance(was, is wallet.Balance) bool {
	return was.At.Hash == is.At.Hash && was.OnChain == is.OnChain &&
		len(was.Reservations) == len(is.Reservations)
}

func balancesIncomplete(network string, got, asked int) error {
	return fault.New(
		fault.Unavailable, "balances_incomplete",
		"the driver of network %s answered %d of %d balances",
		network, got, asked,
	)
}

// balanceRows returns the balance rows of a network, or a new one for every asset of the parties' addresses.
// Sorted by address and asset, to avoid deadlock.
func (o *Manager) balanceRows(
	ctx context.Context,
	n chain.Network,
	parties []chain.Party,
) (rows []wallet.Balance, err error) {
	for _, p := range parties {
		for _, a := range n.Assets {
			rows = append(rows, wallet.Balance{Address: p.Address, AssetID: a.ID})
		}
	}

	if len(parties) == 0 {
		rows, err = o.db.BalancesOf(ctx, n.Slug)
	}

	slices.SortFunc(rows, compareBalances)

	return rows, err
}

// compareBalances orders balance rows of a network by address and asset.
func compareBalances(a, b wallet.Balance) int {
	return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.AssetID, b.AssetID))
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

		was := b
		if !walletstate.UpdateBalance(&b, at, amounts[i]) || found && isSameBalance(was, b) {
			continue
		}

		if err := tx.PutBalance(ctx, &b); err != nil {
			return err
		}
	}

	return nil
}
