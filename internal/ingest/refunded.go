package ingest

import (
	"context"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
)

// RefundedTx books the move of a refund in the transaction that makes it.
func (s *Ingester) RefundedTx(ctx context.Context, tx invoice.Tx, fact invoice.RefundFact) error {
	inv, err := tx.InvoiceByID(ctx, fact.InvoiceID)
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
			return inv.Refund(fact, payments, now)
		},
	)

	return err
}
