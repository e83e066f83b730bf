package engine

import (
	"context"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
)

// ReceivedPayments returns the payments that can be refunded, as the transaction sees them.
func (t *transaction) ReceivedPayments(
	ctx context.Context,
	owner event.Owner,
	invoiceID, paymentID string,
) ([]payout.Received, error) {
	return received(ctx, t, owner, invoiceID, paymentID)
}

// payoutView is payout's view of the store, extended by the payments that refunds read.
type payoutView struct{ view[payout.Tx] }

// ReceivedPayments returns the committed payments that can be refunded.
func (v payoutView) ReceivedPayments(
	ctx context.Context,
	owner event.Owner,
	invoiceID, paymentID string,
) ([]payout.Received, error) {
	return received(ctx, v.Reader, owner, invoiceID, paymentID)
}

// received returns the payments that can be refunded: the confirmed payments of an invoice, or one payment.
func received(
	ctx context.Context,
	r invoice.Reader,
	owner event.Owner,
	invoiceID, paymentID string,
) ([]payout.Received, error) {
	var payments []invoice.Payment

	if paymentID != "" {
		p, err := r.Payment(ctx, owner, paymentID)
		if err != nil {
			return nil, err
		}

		payments = append(payments, p)
	} else {
		if _, err := r.Invoice(ctx, owner, invoiceID); err != nil {
			return nil, err
		}

		var err error
		if payments, err = r.PaymentsOfInvoices(ctx, []string{invoiceID}); err != nil {
			return nil, err
		}
	}

	var out []payout.Received

	for _, p := range payments {
		if p.Status == invoice.Confirmed {
			out = append(out, payout.Received{
				PaymentID: p.ID,
				InvoiceID: p.InvoiceID,
				Network:   p.Network,
				AssetID:   p.AssetID,
				Amount:    p.Amount,
				Simulated: p.Simulated,
			})
		}
	}

	return out, nil
}
