package payout

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// CancelTx cancels a payout that is not signed yet: it fails as canceled. A signed payout is fault.State with
// code payout_not_pending. A payout that may have been paid before the records were restored has code
// payout_awaiting_review.
func (s *Service) CancelTx(ctx context.Context, tx Tx, owner event.Owner, payoutID string) (Payout, error) {
	// spec 3.2.1
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
	if fault.Code(err) == "transaction_awaiting_review" {
		return Payout{}, awaitsReview(err, p)
	}

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

const codeAwaitingReview = "payout_awaiting_review"

// awaitsReview wraps the reason why a payout may have been paid in fault.State with code
// payout_awaiting_review.
func awaitsReview(cause error, p Payout) error {
	return fault.Wrap(
		cause,
		fault.State,
		codeAwaitingReview,
		"payout %s may have been paid by records that are lost: it waits until its wallet was compared with its "+
			"network, by a person where that shows something that is not on record",
		p.ID,
	)
}

// PrepareCancel compares the wallet of a pending payout with its network, once in the life of a process. Call
// it before the transaction of CancelTx or CancelRefundTx. It returns fault.State with code
// payout_awaiting_review if the network is not read yet, or has a transaction that is not on record.
func (s *Service) PrepareCancel(ctx context.Context, owner event.Owner, payoutID string) error {
	p, err := s.db.Payout(ctx, owner, payoutID)
	if errors.Is(err, fault.NotFound) {
		return nil // the transaction reports it
	}

	if err != nil || p.Status != Pending {
		return err
	}

	t, err := s.db.Transaction(ctx, p.TransactionID)
	if err != nil {
		return err
	}

	if err := s.sender.CompareWallet(ctx, p.Network, t.Order.From.Address); err != nil {
		return awaitsReview(err, p)
	}

	return nil
}

// PrepareCancelRefund is PrepareCancel of a refund's payout.
func (s *Service) PrepareCancelRefund(ctx context.Context, owner event.Owner, refundID string) error {
	r, err := s.db.Refund(ctx, owner, refundID)
	if errors.Is(err, fault.NotFound) {
		return nil // the transaction reports it
	}

	if err != nil || r.Status != RefundPending {
		return err
	}

	return s.PrepareCancel(ctx, owner, r.PayoutID)
}

// Cancel is PrepareCancel, and CancelTx in a transaction of its own.
func (s *Service) Cancel(ctx context.Context, owner event.Owner, payoutID string) (p Payout, err error) {
	if err := s.PrepareCancel(ctx, owner, payoutID); err != nil {
		return Payout{}, err
	}

	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		p, err = s.CancelTx(ctx, tx, owner, payoutID)
		return err
	})

	return p, err
}

// CancelRefundTx cancels a refund whose payout is not signed yet. Otherwise it returns fault.State with code
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
		if errors.Is(err, fault.State) && fault.Code(err) != codeAwaitingReview {
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

// CancelRefund is PrepareCancelRefund, and CancelRefundTx in a transaction of its own.
func (s *Service) CancelRefund(
	ctx context.Context,
	owner event.Owner,
	refundID string,
) (r Refund, err error) {
	if err := s.PrepareCancelRefund(ctx, owner, refundID); err != nil {
		return Refund{}, err
	}

	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		r, err = s.CancelRefundTx(ctx, tx, owner, refundID)
		return err
	})

	return r, err
}
