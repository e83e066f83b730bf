package invoice

import (
	"context"

	"github.com/seed-8ee7f392/payments/event"
)

// CancelTx cancels an invoice in tx; see Invoice.Cancel for the refusals.
func (s *Service) CancelTx(ctx context.Context, tx Tx, owner event.Owner, id string) (Invoice, error) {
	return s.change(ctx, tx, owner, id, func(inv *Invoice, payments []Payment) ([]event.Type, error) {
		return inv.Cancel(payments, s.now())
	})
}

// Cancel is CancelTx in a transaction of its own.
func (s *Service) Cancel(ctx context.Context, owner event.Owner, id string) (Invoice, error) {
	return update(
		ctx, s,
		func(ctx context.Context, tx Tx) (Invoice, error) { return s.CancelTx(ctx, tx, owner, id) },
	)
}

// AcceptTx takes what an invoice received as its payment: accept_late_payment, or with allowUnderpaid accept.
// See Invoice.Accept for the refusals.
func (s *Service) AcceptTx(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	id string,
	allowUnderpaid bool,
) (Invoice, error) {
	return s.change(ctx, tx, owner, id, func(inv *Invoice, payments []Payment) ([]event.Type, error) {
		return inv.Accept(payments, allowUnderpaid, s.now())
	})
}

// Accept is AcceptTx in a transaction of its own.
func (s *Service) Accept(
	ctx context.Context,
	owner event.Owner,
	id string,
	allowUnderpaid bool,
) (Invoice, error) {
	return update(ctx, s, func(ctx context.Context, tx Tx) (Invoice, error) {
		return s.AcceptTx(ctx, tx, owner, id, allowUnderpaid)
	})
}

func (s *Service) change(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	id string,
	f func(inv *Invoice, payments []Payment) ([]event.Type, error),
) (Invoice, error) {
	inv, err := tx.Invoice(ctx, owner, id)
	if err != nil {
		return Invoice{}, err
	}

	return Change(ctx, tx, inv, s.now(), f)
}
