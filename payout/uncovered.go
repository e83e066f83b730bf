package payout

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// PaymentLostTx cancels unsigned refunds of a payment that left the chain: first those that name
// it, then those of its invoice, newest first, until what is still confirmed covers all that have
// not failed.
func (s *Service) PaymentLostTx(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	paymentID, invoiceID string,
) error { // spec D6.6
	// A refund that is being created reads the payment under the same lock, so that one of the two
	// sees the other.
	if err := tx.LockAccount(ctx, owner.AccountID); err != nil {
		return err
	}

	named, err := unfailedRefunds(ctx, tx, RefundFilter{Owner: owner, PaymentID: paymentID})
	if err != nil {
		return err
	}

	for _, r := range named {
		if _, err := s.cancelUnsigned(ctx, tx, r); err != nil {
			return err
		}
	}

	if invoiceID == "" {
		return nil
	}

	return s.cancelUncovered(ctx, tx, owner, invoiceID)
}

// CancelUncovered cancels the refund of a payout that is about to be signed, where what is confirmed does not cover it:
// a payment left the chain before its wallet was compared with the network. canceled is false for what goes on.
func (s *Service) CancelUncovered(ctx context.Context, p Payout) (canceled bool, err error) {
	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		if err := tx.LockAccount(ctx, p.Owner.AccountID); err != nil {
			return err
		}

		r, err := tx.Refund(ctx, p.Owner, p.RefundID)
		if err != nil {
			return err
		}

		if r.PaymentID != "" {
			received, err := tx.ReceivedPayments(ctx, p.Owner, "", r.PaymentID)
			if err != nil {
				return err
			}

			if len(received) == 0 {
				canceled, err = s.cancelUnsigned(ctx, tx, r)
				return err
			}
		}

		if r.InvoiceID == "" {
			return nil
		}

		if err := s.cancelUncovered(ctx, tx, p.Owner, r.InvoiceID); err != nil {
			return err
		}

		r, err = tx.Refund(ctx, p.Owner, p.RefundID)
		canceled = r.Status == RefundCanceled

		return err
	})

	return canceled, err
}

// cancelUncovered cancels unsigned refunds of an invoice, newest first, until the confirmed
// payments cover the others.
func (s *Service) cancelUncovered(ctx context.Context, tx Tx, owner event.Owner, invoiceID string) error {
	refunds, err := unfailedRefunds(ctx, tx, RefundFilter{Owner: owner, InvoiceID: invoiceID})
	if err != nil || len(refunds) == 0 {
		return err
	}

	received, err := tx.ReceivedPayments(ctx, owner, invoiceID, "")
	if err != nil {
		return err
	}

	// Amounts in base units, by network and asset.
	type coin struct{ network, assetID string }

	confirmed, promised := map[coin]chain.Amount{}, map[coin]chain.Amount{}

	for _, payment := range received {
		c := coin{payment.Network, payment.AssetID}
		confirmed[c] = confirmed[c].Add(payment.Amount)
	}

	for _, r := range refunds {
		c := coin{r.Network, r.AssetID}
		promised[c] = promised[c].Add(r.Amount)
	}

	for _, r := range refunds {
		c := coin{r.Network, r.AssetID}
		if r.PaymentID != "" || !confirmed[c].Less(promised[c]) {
			continue
		}

		canceled, err := s.cancelUnsigned(ctx, tx, r)
		if err != nil {
			return err
		}

		if canceled {
			promised[c] = promised[c].Sub(r.Amount)
		}
	}

	return nil
}

// unfailedRefunds returns the pending and succeeded refunds that a filter selects, newest first.
func unfailedRefunds(ctx context.Context, r Reader, f RefundFilter) ([]Refund, error) {
	f.Statuses = []RefundStatus{RefundPending, RefundSucceeded}
	return allRefunds(ctx, r, f)
}

// cancelUnsigned cancels a refund unless its payout is signed. Until its wallet is compared with the network it may be,
// by records that are lost: CancelUncovered comes back to it.
func (s *Service) cancelUnsigned(ctx context.Context, tx Tx, r Refund) (bool, error) {
	p, err := tx.Payout(ctx, r.Owner, r.PayoutID)
	if err != nil {
		return false, err
	}

	t, err := tx.Transaction(ctx, p.TransactionID)
	if err != nil || !s.sender.WasCompared(t.Network, t.Order.From.Address) {
		return false, err
	}

	_, err = s.CancelRefundTx(ctx, tx, r.Owner, r.ID)
	if errors.Is(err, fault.State) {
		return false, nil
	}

	return err == nil, err
}
