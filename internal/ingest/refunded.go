package ingest

import (
	"context"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// RefundedTx applies the transition of a refund to its invoice, in the transaction that makes it.
func (s *Ingester) RefundedTx(ctx context.Context, tx invoice.Tx, change invoicestate.RefundChange) error {
	inv, err := tx.InvoiceByID(ctx, change.InvoiceID)
	if err != nil {
		return err
	}

	now := s.now()
	_, err = invoice.Change(
		ctx,
		tx,
		inv,
		now,
		func(inv *invoice.Invoice, payments []invoice.Payment) ([]event.Type, error) {
			return invoicestate.Refund(inv, change, payments, now)
		},
	)

	return err
}
