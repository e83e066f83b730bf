package txmgr

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
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

// spendTx records the height at which a transaction was included (0: it was retracted) in the balances
// that pay it. rows are the transaction and then its batch members, each with its own reservation.
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

// spends returns the most that a transaction or one of its batch members takes from an address, in base
// units per asset id: its outputs, unless the payment that it bumps or a stray pays them, and the network fee if
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
