package engine

import (
	"context"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file tracks the writes of a transaction. It keeps the objects as the transaction leaves them: each of
// its events shows this state, even if the object changed after the event (decisions 11). It also records
// which kinds of work the writes make, so that the commit wakes only the workers that do it. For balances it
// records how much more can be spent.

// leave remembers a written record.
func (t *transaction) leave(record event.Payload) {
	if t.left == nil {
		t.left = map[string]event.Payload{}
	}

	t.left[record.EventObject().ID] = record
}

// showLeft makes an event show its record as the transaction leaves it.
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
	t.made.add("", showing)

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

// PutSettlements writes settlements. For ended ones it publishes settlement.updated if they now show
// something else.
func (t *transaction) PutSettlements(ctx context.Context, settlements ...*settlement.Settlement) error {
	var updated []event.Event

	for _, s := range settlements {
		before, err := t.settlementBefore(ctx, *s)
		if err != nil {
			return err
		}

		if settlementstate.IsUpdated(before, *s) {
			s.Sequence++
			updated = append(updated, eventctx.About(*s, event.SettlementUpdated)...)
		}
	}

	if err := t.Tx.PutSettlements(ctx, settlements...); err != nil {
		return err
	}

	for _, s := range settlements {
		t.leave(*s)
		t.reads.noteSettlement(*s)
		t.made.add(s.Network, settling)
	}

	return t.AppendEvents(ctx, updated...)
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

// PutTransaction writes a transaction of our own. When it has ended, the work that waits for it may go on.
func (t *transaction) PutTransaction(ctx context.Context, own *wallet.Transaction) error {
	t.made.add(own.Network, sending|settling)
	return t.Tx.PutTransaction(ctx, own)
}

// PutWallet writes a wallet, which may no longer be frozen.
func (t *transaction) PutWallet(ctx context.Context, w *wallet.Wallet) error {
	t.made.add(w.Network, sending)
	return t.Tx.PutWallet(ctx, w)
}

// PutSweep writes a sweep, whose next step may be due.
func (t *transaction) PutSweep(ctx context.Context, s *settlement.Sweep) error {
	t.made.add(s.Network, settling)
	return t.Tx.PutSweep(ctx, s)
}

// PutRetry writes a transaction to look up.
func (t *transaction) PutRetry(ctx context.Context, r *scan.Retry) error {
	t.made.add(r.Network, retrying)
	return t.Tx.PutRetry(ctx, r)
}

// PutRange writes blocks to read for an address.
func (t *transaction) PutRange(ctx context.Context, r *scan.Range) error {
	t.made.add(r.Network, reading)
	return t.Tx.PutRange(ctx, r)
}

// PutAccount writes an account, whose settings may let settlements go on.
func (t *transaction) PutAccount(ctx context.Context, a *account.Account) error {
	t.made.add("", settling)
	t.reads.noteAccount(*a)

	return t.Tx.PutAccount(ctx, a)
}

// PutEndpoint writes an endpoint, which may accept webhooks again.
func (t *transaction) PutEndpoint(ctx context.Context, e *webhook.Endpoint) error {
	t.made.add("", delivering)
	return t.Tx.PutEndpoint(ctx, e)
}

// PutDeliveries writes webhooks to send.
func (t *transaction) PutDeliveries(ctx context.Context, deliveries ...*webhook.Delivery) error {
	if len(deliveries) > 0 {
		t.made.add("", delivering)
	}

	return t.Tx.PutDeliveries(ctx, deliveries...)
}

// balanceKey identifies a balance.
type balanceKey struct {
	network string
	address chain.Address
	assetID string
}

// balanceChange is a transaction's change of a balance's available amount.
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

// funded returns the balances of native coin whose available amount the transaction raised.
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
