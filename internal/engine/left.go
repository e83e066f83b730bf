package engine

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file keeps the objects as a transaction leaves them: what each of its events shows, whatever else
// happened to the object after the event (decisions 11). Of balances it keeps how much more they leave to spend.

// leave keeps a record that was written.
func (t *transaction) leave(record event.Payload) {
	if t.left == nil {
		t.left = map[string]event.Payload{}
	}

	t.left[record.EventObject().ID] = record
}

// showLeft has an event show its record as the transaction leaves it.
func (t *transaction) showLeft(ev *event.Event) {
	if left, ok := t.left[ev.ObjectID]; ok {
		ev.Payload = left
	}
}

// PutInvoice writes an invoice.
func (t *transaction) PutInvoice(ctx context.Context, inv *invoice.Invoice) error {
	if err := t.Tx.PutInvoice(ctx, inv); err != nil {
		return err
	}

	t.leave(*inv)

	return nil
}

// PutPayments writes payments.
func (t *transaction) PutPayments(ctx context.Context, payments ...*invoice.Payment) error {
	if err := t.Tx.PutPayments(ctx, payments...); err != nil {
		return err
	}

	for _, p := range payments {
		t.leave(*p)
	}

	return nil
}

// PutSettlements writes settlements.
func (t *transaction) PutSettlements(ctx context.Context, settlements ...*settlement.Settlement) error {
	if err := t.Tx.PutSettlements(ctx, settlements...); err != nil {
		return err
	}

	for _, s := range settlements {
		t.leave(*s)
	}

	return nil
}

// PutPayout writes a payout.
func (t *transaction) PutPayout(ctx context.Context, p *payout.Payout) error {
	if err := t.Tx.PutPayout(ctx, p); err != nil {
		return err
	}

	t.leave(*p)

	return nil
}

// PutRefund writes a refund.
func (t *transaction) PutRefund(ctx context.Context, r *payout.Refund) error {
	if err := t.Tx.PutRefund(ctx, r); err != nil {
		return err
	}

	t.leave(*r)

	return nil
}

// balanceKey names a balance.
type balanceKey struct {
	network string
	address chain.Address
	assetID string
}

// balanceChange is what a transaction did to what can be spent of a balance.
type balanceChange struct {
	before chain.Amount
	now    wallet.Balance
}

// BalanceForUpdate locks and returns a balance.
func (t *transaction) BalanceForUpdate(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) (wallet.Balance, bool, error) {
	b, found, err := t.Tx.BalanceForUpdate(ctx, network, address, assetID)
	if err != nil {
		return b, found, err
	}

	key := balanceKey{network, address, assetID}
	if _, known := t.balances[key]; !known {
		if t.balances == nil {
			t.balances = map[balanceKey]balanceChange{}
		}

		t.balances[key] = balanceChange{before: b.Available(), now: b}
	}

	return b, found, nil
}

// PutBalance writes a balance.
func (t *transaction) PutBalance(ctx context.Context, b *wallet.Balance) error {
	if err := t.Tx.PutBalance(ctx, b); err != nil {
		return err
	}

	key := balanceKey{b.Network, b.Address, b.AssetID}
	if change, locked := t.balances[key]; locked {
		change.now = *b
		t.balances[key] = change
	}

	return nil
}

// funded returns the balances of native coin of which more can be spent than before the transaction.
func (t *transaction) funded() []wallet.Balance {
	var all []wallet.Balance

	for key, change := range t.balances {
		n, ok := t.engine.Networks.Network(key.network)
		if !ok || !change.before.Less(change.now.Available()) {
			continue
		}

		if native, ok := n.Native(); ok && native.ID == key.assetID {
			all = append(all, change.now)
		}
	}

	return all
}
