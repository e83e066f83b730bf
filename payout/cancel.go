package payout

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// CancelTx cancels a payout that is not signed yet: it fails as canceled. Otherwise fault.State with code
// payout_not_pending.
func (s *Service) CancelTx(ctx context.Context, tx Tx, owner event.Owner, payoutID string) (Payout, error) {
	p, err := tx.Payout(ctx, owner, payoutID)
	if err != nil {
		return Payout{}, err
	}

	if p.Status == Failed && p.FailureCode == wallet.FailCanceled {
		return p, nil
	}

	if p.Status != Pending {
		return Payout{}, fault.New(
			fault.State, "payout_not_pending",
			"payout %s is %s: only a pending one can be canceled",
			p.ID, p.Status,
		)
	}

	t, err := s.sender.CancelTx(ctx, tx, p.TransactionID)
	if errors.Is(err, fault.State) {
		return Payout{}, fault.Wrap(
			err, fault.State, "payout_not_pending",
			"payout %s was signed meanwhile and can no longer be canceled",
			p.ID,
		)
	}

	if err != nil {
		return Payout{}, err
	}

	if err := s.TransactionTx(ctx, tx, t); err != nil {
		return Payout{}, err
	}

	return tx.Payout(ctx, owner, payoutID)
}

// Cancel is CancelTx in a transaction of its own.
func (s *Service) Cancel(ctx context.Context, owner event.Owner, payoutID string) (p Payout, err error) {
	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		p, err = s.CancelTx(ctx, tx, owner, payoutID)
		return err
	})

	return p, err
}

// CancelRefundTx cancels a refund whose payout is not signed yet; otherwise fault.State with code
// refund_not_pending.
func (s *Service) CancelRefundTx(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	refundID string,
) (Refund, error) {
	r, err := tx.Refund(ctx, owner, refundID)
	if err != nil {
		return Refund{}, err
	}

	if r.Status == RefundCanceled {
		return r, nil
	}

	if r.Status != RefundPending {
		return Refund{}, fault.New(
			fault.State, "refund_not_pending",
			"refund %s is %s: only a pending one can be canceled",
			r.ID, r.Status,
		)
	}

	if _, err := s.CancelTx(ctx, tx, owner, r.PayoutID); err != nil {
		if errors.Is(err, fault.State) {
			return Refund{}, fault.Wrap(
				err, fault.State, "refund_not_pending",
				"the payout of refund %s was signed already",
				r.ID,
			)
		}

		return Refund{}, err
	}

	return tx.Refund(ctx, owner, refundID)
}

// CancelRefund is CancelRefundTx in a transaction of its own.
func (s *Service) CancelRefund(
	ctx context.Context,
	owner event.Owner,
	refundID string,
) (r Refund, err error) {
	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		r, err = s.CancelRefundTx(ctx, tx, owner, refundID)
		return err
	})

	return r, err
}

// PaymentLostTx is the reaction to a payment that left the chain. Refunds of that payment that are
// not signed are canceled, and those of its invoice as a whole, the newest first, as long as what
// is still confirmed does not cover all that have not failed.
func (s *Service) PaymentLostTx(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	paymentID, invoiceID string,
) error {
	// A refund that is being created reads the payment under the same lock, so that one of the two
	// sees the other.
	if err := tx.LockAccount(ctx, owner.AccountID); err != nil {
		return err
	}

	of := func(f RefundFilter) ([]Refund, error) {
		f.Owner, f.Statuses = owner, []RefundStatus{RefundPending, RefundSucceeded}
		return allRefunds(ctx, tx, f)
	}

	named, err := of(RefundFilter{PaymentID: paymentID})
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

	rest, err := of(RefundFilter{InvoiceID: invoiceID})
	if err != nil || len(rest) == 0 {
		return err
	}

	received, err := s.config.Received(ctx, tx, owner, invoiceID, "")
	if err != nil {
		return err
	}

	type coin struct{ network, assetID string }

	left, promised := map[coin]chain.Amount{}, map[coin]chain.Amount{}

	for _, x := range received {
		c := coin{x.Network, x.AssetID}
		left[c] = left[c].Add(x.Amount)
	}

	for _, r := range rest {
		c := coin{r.Network, r.AssetID}
		promised[c] = promised[c].Add(r.Amount)
	}

	for _, r := range rest {
		c := coin{r.Network, r.AssetID}
		if r.PaymentID != "" || !left[c].Less(promised[c]) {
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

// cancelUnsigned cancels a refund unless its payout is signed.
func (s *Service) cancelUnsigned(ctx context.Context, tx Tx, r Refund) (bool, error) {
	_, err := s.CancelRefundTx(ctx, tx, r.Owner, r.ID)
	if errors.Is(err, fault.State) {
		return false, nil
	}

	return err == nil, err
}
