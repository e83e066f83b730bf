package engine

import (
	"context"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file keeps the objects as a transaction leaves them: what each of its events shows, whatever else
// happened to the object after the event (decisions 11).

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
