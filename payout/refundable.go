package payout

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// refundable returns the payments received for an invoice or one payment, and how much of them may still be
// refunded. Refunds that have not failed count against the payment they name and against the invoice as a
// whole.
func (s *Service) refundable(
	ctx context.Context,
	r refundReader,
	owner event.Owner,
	invoiceID, paymentID string,
) (total Received, left chain.Amount, err error) { // spec D6.3
	received, err := r.ReceivedPayments(ctx, owner, invoiceID, paymentID)
	if err != nil {
		return Received{}, left, err
	}

	if total, err = sum(received); err != nil {
		return Received{}, left, err
	}

	whole := total.Amount
	if paymentID != "" && total.InvoiceID != "" {
		all, err := r.ReceivedPayments(ctx, owner, total.InvoiceID, "")
		if err != nil {
			return Received{}, left, err
		}

		whole = chain.Amount{}

		for _, x := range all {
			if x.Network == total.Network && x.AssetID == total.AssetID {
				whole = whole.Add(x.Amount)
			}
		}
	}

	f := RefundFilter{
		Owner:     owner,
		InvoiceID: total.InvoiceID,
		Statuses:  []RefundStatus{RefundPending, RefundSucceeded},
	}
	if total.InvoiceID == "" {
		f.PaymentID = total.PaymentID
	}

	refunds, err := r.Refunds(ctx, f)
	if err != nil {
		return Received{}, left, err
	}

	var ofPayment, ofAll chain.Amount

	for _, x := range refunds {
		if x.AssetID != total.AssetID || x.Network != total.Network {
			continue
		}

		ofAll = ofAll.Add(x.Amount)
		if paymentID != "" && x.PaymentID == paymentID {
			ofPayment = ofPayment.Add(x.Amount)
		}
	}

	return total, chaindata.Min(total.Amount.SubFloor(ofPayment), whole.SubFloor(ofAll)), nil
}

// sum returns the total received in one asset (base units). If several assets were received, the refund must
// name a payment.
func sum(received []Received) (Received, error) { // spec D6.4
	if len(received) == 0 {
		return Received{}, fault.New(
			fault.State, "refund_no_payment",
			"no confirmed payment was received that could be refunded",
		)
	}

	total := received[0]
	for _, r := range received[1:] {
		if r.Network != total.Network || r.AssetID != total.AssetID || r.Simulated != total.Simulated {
			return Received{}, fault.Param(
				"payment_id", "refund_payment_required",
				"the invoice was paid in several assets: name the payment to refund",
			).AsTransient()
		}

		total.Amount = total.Amount.Add(r.Amount)
	}

	if len(received) > 1 {
		total.PaymentID = ""
	}

	return total, nil
}
