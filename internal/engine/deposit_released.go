package engine

import (
	"context"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/settlement"
)

func (e *Engine) depositReleased(ctx context.Context, tx Tx, s settlement.Settlement) error { // spec D4.20
	if s.DepositAddressID == "" {
		return nil
	}

	p, err := tx.PaymentByID(ctx, s.PaymentID)
	if err != nil {
		return err
	}

	p.Sequence++
	if err := tx.PutPayments(ctx, &p); err != nil {
		return err
	}

	return tx.AppendEvents(ctx, eventctx.About(p, event.DepositPaymentReleased)...)
}
