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

// leave keeps an object that was written.
func (t *transaction) leave(id string, object any) {
	if t.left == nil {
		t.left = map[string]any{}
	}

	t.left[id] = object
}

// showLeft sets the subject of an event to its object as the transaction leaves it.
func (t *transaction) showLeft(ev *event.Event) {
	switch left := t.left[ev.ObjectID].(type) {
	case invoice.Invoice:
		if _, same := ev.Subject.(invoice.Invoice); same {
			ev.Subject = left
		}
	case invoice.Payment:
		if _, same := ev.Subject.(invoice.Payment); same {
			ev.Subject = left
		}
	case settlement.Settlement:
		if _, same := ev.Subject.(settlement.Settlement); same {
			ev.Subject = left
		}
	case payout.Payout:
		if _, same := ev.Subject.(payout.Payout); same {
			ev.Subject = left
		}
	case payout.Refund:
		if _, same := ev.Subject.(payout.Refund); same {
			ev.Subject = left
		}
	}
}

// PutInvoice writes an invoice.
func (t *transaction) PutInvoice(ctx context.Context, inv *invoice.Invoice) error {
	if err := t.Tx.PutInvoice(ctx, inv); err != nil {
		return err
	}

	t.leave(inv.ID, *inv)

	return nil
}

// PutPayments writes payments.
func (t *transaction) PutPayments(ctx context.Context, payments ...*invoice.Payment) error {
	if err := t.Tx.PutPayments(ctx, payments...); err != nil {
		return err
	}

	for _, p := range payments {
		t.leave(p.ID, *p)
	}

	return nil
}

// PutSettlements writes settlements.
func (t *transaction) PutSettlements(ctx context.Context, settlements ...*settlement.Settlement) error {
	if err := t.Tx.PutSettlements(ctx, settlements...); err != nil {
		return err
	}

	for _, s := range settlements {
		t.leave(s.ID, *s)
	}

	return nil
}

// PutPayout writes a payout.
func (t *transaction) PutPayout(ctx context.Context, p *payout.Payout) error {
	if err := t.Tx.PutPayout(ctx, p); err != nil {
		return err
	}

	t.leave(p.ID, *p)

	return nil
}

// PutRefund writes a refund.
func (t *transaction) PutRefund(ctx context.Context, r *payout.Refund) error {
	if err := t.Tx.PutRefund(ctx, r); err != nil {
		return err
	}

	t.leave(r.ID, *r)

	return nil
}
