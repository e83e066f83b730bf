package txmgr

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

// A recovery moves a chain.Stray, which no balance shows, to the master wallet. Only its fee is reserved.

// recoverySignTimeout is the time that a recovery may wait for its signature.
const recoverySignTimeout = 30 * time.Minute

// Recover queues the transaction of an order with Recovers, and reserves its maximum fee in the wallet that
// pays it. While a recovery for the same account is unfinished, it returns that one.
//
// Errors: fault.State with code insufficient_balance; those of EnqueueTx and RefreshBalances.
func (o *Manager) Recover(
	ctx context.Context,
	owner event.Owner,
	network string,
	order chain.Order,
) (wallet.Transaction, error) {
	payer := recoveryPayer(order)

	n, ok := o.registry.Network(network)
	if !ok {
		return wallet.Transaction{}, unknownNetwork(network)
	}

	// The reservation needs the current balance.
	err := o.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		return o.TrackTx(ctx, tx, owner, network, payer)
	})
	if err != nil {
		return wallet.Transaction{}, err
	}

	if err := o.RefreshBalances(ctx, network, payer); err != nil {
		return wallet.Transaction{}, err
	}

	t := wallet.Transaction{
		ID:       o.config.IDs.Next(),
		Owner:    owner,
		Network:  network,
		Kind:     wallet.Recovery,
		ObjectID: string(order.Recovers.Account),
		Order:    order,
		GiveUpAt: o.now().Add(recoverySignTimeout),
	}

	var queued wallet.Transaction

	err = o.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) (err error) {
		queued, err = o.enqueueRecoveryTx(ctx, tx, n, t)
		return err
	})

	return queued, err
}

// enqueueRecoveryTx reserves the maximum fee of a recovery and queues it. If a recovery for the same account
// is unfinished, it returns that one.
func (o *Manager) enqueueRecoveryTx(
	ctx context.Context,
	tx wallet.Tx,
	n chain.Network,
	t wallet.Transaction,
) (wallet.Transaction, error) {
	native, _ := n.Native()
	payer := recoveryPayer(t.Order).Address

	// Lock the payer's balance, so that recoveries are queued one after the other.
	if _, _, err := tx.BalanceForUpdate(ctx, t.Network, payer, native.ID); err != nil {
		return wallet.Transaction{}, err
	}

	rows, err := tx.LiveTransactions(ctx, t.Network, t.Order.From.Address)
	if err != nil {
		return wallet.Transaction{}, err
	}

	if i := slices.IndexFunc(rows, func(other wallet.Transaction) bool {
		return other.Kind == wallet.Recovery && other.ObjectID == t.ObjectID
	}); i >= 0 {
		return rows[i], nil
	}

	if err := o.ReserveTx(ctx, tx, t.Owner, t.Network, payer, native.ID, t.ID, t.Order.MaxFee); err != nil {
		return wallet.Transaction{}, err
	}

	return o.EnqueueTx(ctx, tx, t)
}

// RecoveryTx releases the reservation of a recovery once it has failed.
func (o *Manager) RecoveryTx(ctx context.Context, tx wallet.Tx, t wallet.Transaction) error {
	if t.Kind != wallet.Recovery || t.State != wallet.Failed {
		return nil
	}

	n, ok := o.registry.Network(t.Network)
	if !ok {
		return unknownNetwork(t.Network)
	}

	native, _ := n.Native()

	return o.UnreserveTx(ctx, tx, t.Network, recoveryPayer(t.Order).Address, native.ID, t.ID)
}

// recoveryPayer returns the party that pays the fee of a recovery.
func recoveryPayer(order chain.Order) chain.Party {
	if order.FeePayer != nil {
		return *order.FeePayer
	}

	return order.From
}
